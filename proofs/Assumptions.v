(* What each theorem rests on.  The output of this file is compared with assumptions.txt. *)
From Starfold Require Import Index Lang Base Sem Vglob Rounds Paper Instance Gaps Grad Privacy.

Goal True. idtac "typeof_sound". Abort. Print Assumptions typeof_sound.
Goal True. idtac "typeof_complete". Abort. Print Assumptions typeof_complete.
Goal True. idtac "wf_preserved". Abort. Print Assumptions wf_preserved.
Goal True. idtac "base_fed_shared". Abort. Print Assumptions base_fed_shared.
Goal True. idtac "client_locality". Abort. Print Assumptions client_locality.
Goal True. idtac "noninterference". Abort. Print Assumptions noninterference.
Goal True. idtac "exposure_discipline". Abort. Print Assumptions exposure_discipline.
Goal True. idtac "virtual_global_consistency". Abort. Print Assumptions virtual_global_consistency.
Goal True. idtac "vglob_exists". Abort. Print Assumptions vglob_exists.
Goal True. idtac "vglob_unique". Abort. Print Assumptions vglob_unique.
Goal True. idtac "one_round_factorization". Abort. Print Assumptions one_round_factorization.
Goal True. idtac "one_round_correspondence". Abort. Print Assumptions one_round_correspondence.
Goal True. idtac "postprocessing_closure". Abort. Print Assumptions postprocessing_closure.
Goal True. idtac "run_correct". Abort. Print Assumptions run_correct.
Goal True. idtac "federated_execution_is_exact". Abort. Print Assumptions federated_execution_is_exact.
Goal True. idtac "Z_execution_is_exact". Abort. Print Assumptions Z_execution_is_exact.
Goal True. idtac "gradient_expressibility". Abort. Print Assumptions gradient_expressibility.
Goal True. idtac "central_lifting". Abort. Print Assumptions central_lifting.
Goal True. idtac "local_lifting". Abort. Print Assumptions local_lifting.
Goal True. idtac "paper_broadcast_fails_without_records". Abort. Print Assumptions paper_broadcast_fails_without_records.
Goal True. idtac "max_is_not_mergeable". Abort. Print Assumptions max_is_not_mergeable.
Goal True. idtac "locality_does_not_give_consistency". Abort. Print Assumptions locality_does_not_give_consistency.
Goal True. idtac "record_wise_is_consistent". Abort. Print Assumptions record_wise_is_consistent.
Goal True. idtac "every_symmetric_computation_factors". Abort. Print Assumptions every_symmetric_computation_factors.
