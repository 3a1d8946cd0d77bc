(* What the oracle runs: the checker, the ordinary evaluator, the rounds and the protocol, as OCaml. *)
From Starfold Require Import Index Lang Sem Rounds Instance.
Require Import Extraction ExtrOcamlBasic ExtrOcamlNatInt ExtrOcamlZInt.
Extraction Language OCaml.
Extraction "extracted/starfold_model.ml" ztypeof zcentral zprotocol zrounds zlocal shared.
