(* Where the paper's text does not hold as it stands: each as a theorem. *)
From Coq Require Import List Arith Lia Bool Permutation Reals Lra.
Import ListNotations.
From Starfold Require Import Index Lang.

(* 1. def:broadcast-compatibility takes the larger extent.  Against a client without records that is wrong: a shared
   tensor of extent 1 along the record axis then has s v shape(X) <> shape(X), so Br_c of def:local-broadcast is undefined,
   though def:record-agnostic-broadcast-compatibility promises it for every local tensor. *)
Definition paper_join (a b : nat) : option nat := if (a =? b) || (a =? 1) || (b =? 1) then Some (Nat.max a b) else None.
Theorem paper_broadcast_fails_without_records : exists n, paper_join 1 n <> Some n.
Proof. exists 0. discriminate. Qed.
Theorem paper_broadcast_otherwise n : 1 <= n -> paper_join 1 n = Some n /\ paper_join n 1 = Some n.
Proof.
  intros H. destruct n as [|[|n]]; [lia | auto | auto].
Qed.
(* The rule that works, and agrees with the paper's wherever no extent is 0. *)
Theorem njoin_works n : njoin 1 n = Some n /\ njoin n 1 = Some n.
Proof. destruct n as [|[|]]; auto. Qed.
Theorem njoin_is_paper_join a b : 1 <= a -> 1 <= b -> njoin a b = paper_join a b.
Proof.
  intros A B. unfold njoin, paper_join. destruct (a =? b) eqn:E; simpl.
  - apply Nat.eqb_eq in E. subst. f_equal. lia.
  - destruct (a =? 1) eqn:E1; simpl. { apply Nat.eqb_eq in E1. subst. f_equal. lia. }
    destruct (b =? 1) eqn:E2; simpl; auto. apply Nat.eqb_eq in E2. subst. f_equal. lia.
Qed.

(* 2. def:one-round-typed-program asks for a commutative monoid on R^s itself with alpha(Z) = (+) alpha(Z^c), also for clients
   without records.  No alpha_0 in R makes max such an aggregation: it, and min, are outside all theorems. *)
Local Open Scope R_scope.
Definition paper_mergeable (alpha : list R -> R) : Prop := exists (op : R -> R -> R) (e : R),
  (forall x y z, op x (op y z) = op (op x y) z) /\ (forall x y, op x y = op y x) /\ (forall x, op x e = x) /\
  forall ls, ls <> [] -> alpha (concat ls) = fold_right op e (map alpha ls).
Definition is_max (alpha : list R -> R) : Prop := forall x l, alpha (x :: l) = fold_left Rmax l x.
Theorem max_is_not_mergeable alpha : is_max alpha -> ~ paper_mergeable alpha.
Proof.
  intros M (op & e & As & Co & Un & H).
  assert (one : forall x, alpha [x] = x) by (intros; now rewrite M).
  pose (x := alpha [] - 1).
  assert (A : forall y, op (alpha []) y = y).
  { intros y. specialize (H [[]; [y]] ltac:(discriminate)). simpl in H. rewrite one, Un in H. now symmetry. }
  assert (B : alpha [alpha []; x] = op (alpha []) x).
  { specialize (H [[alpha []]; [x]] ltac:(discriminate)). simpl in H. rewrite !one, Un in H. exact H. }
  rewrite A, M in B. simpl in B. pose proof (Rmax_l (alpha []) x). unfold x in *. lra.
Qed.
(* Sums are: *)
Theorem sum_is_mergeable : paper_mergeable (fold_right Rplus 0).
Proof.
  exists Rplus, 0. repeat split; intros; try lra. clear H. induction ls; simpl; auto.
  rewrite <- IHls. clear IHls. induction a; simpl; lra.
Qed.
(* What the merge identity forces: alpha_0 is neutral for every value that alpha takes. *)
Theorem alpha_0_is_neutral alpha op e : (forall x, op x e = x) ->
  (forall ls, ls <> [] -> alpha (concat ls) = fold_right op e (map alpha ls)) ->
  forall l : list R, op (alpha []) (alpha l) = alpha l :> R.
Proof. intros U H l. specialize (H [[]; l] ltac:(discriminate)). simpl in H. rewrite app_nil_r, U in H. now symmetry. Qed.

(* 3. prop:conservative-signature-extensions.  Its proof says that virtual-global consistency "is also one of the assumptions",
   but the statement assumes locality only.  Centering by the client's own mean is client-local, federated in and out, the same for
   all clients; yet no ordinary operation on the concatenation gives the concatenation of its results. *)
Definition client_center (l : list R) : list R := map (fun x => x - fold_right Rplus 0 l / INR (length l)) l.
Theorem locality_does_not_give_consistency :
  ~ exists ord : list R -> list R, forall ls, ls <> [] -> concat (map client_center ls) = ord (concat ls).
Proof.
  intros (ord & H). pose proof (H [[0; 2]] ltac:(discriminate)) as A. pose proof (H [[0]; [2]] ltac:(discriminate)) as B.
  simpl in A, B. rewrite <- A in B. inversion B. lra.
Qed.
(* What has to be assumed: the map commutes with concatenation; then it does act record by record on any split. *)
Theorem record_wise_is_consistent {X Y} (f : list X -> list Y) : (forall l m, f (l ++ m) = f l ++ f m) ->
  forall ls, concat (map f ls) = f (concat ls).
Proof.
  intros H. assert (N : f [] = []).
  { specialize (H [] []). simpl in H. apply (f_equal (@length Y)) in H. rewrite app_length in H.
    destruct (f []); auto. simpl in H. lia. }
  induction ls; simpl; auto. rewrite H. now f_equal.
Qed.
(* 3b. "whenever it receives at least one federated input, it returns a federated tensor" says nothing of record counts: a
   client-local primitive may return another number of records, and then two client-local expressions of one input need not
   align.  The side condition of MatMul_FedFed is then not implied by typing.  (No theorem: the types here keep counts by name.) *)

(* 4. def:shared-state-factorization is semantic, and too weak to exclude anything but order: R^s has room for a code of all
   the clients' tensors.  Whenever lists of client data can be coded in M, every computation that does not depend on the order of
   the clients factors, the exact median among them.  (Tensors of all sizes have the cardinality of R; so this is the case in the
   paper.)  What excludes holistic aggregates is thm:one-round-realization's "expressible", not "fixed dimension". *)
Section Vacuous.
Local Close Scope R_scope.
Variables (X M Y : Type).
Variables (code : list X -> M) (decode : M -> list X).
Hypothesis code_perm : forall l l', Permutation l l' -> code l = code l'.       (* a code of multisets *)
Hypothesis decode_code : forall l, Permutation (decode (code l)) l.
Hypothesis code_decode : forall x, code (decode x) = x.                         (* onto M *)
Variable sigma : list X -> Y.
Hypothesis symmetric : forall l l', Permutation l l' -> sigma l = sigma l'.
Theorem every_symmetric_computation_factors : exists (op : M -> M -> M) (e : M) (phi : X -> M) (psi : M -> Y),
  (forall x y z, op x (op y z) = op (op x y) z) /\ (forall x y, op x y = op y x) /\ (forall x, op x e = x) /\
  forall l, sigma l = psi (fold_right op e (map phi l)).
Proof.
  exists (fun x y => code (decode x ++ decode y)), (code []), (fun x => code [x]), (fun s => sigma (decode s)).
  repeat split.
  - intros. apply code_perm. rewrite !decode_code. now rewrite app_assoc.
  - intros. apply code_perm. apply Permutation_app_comm.
  - intros. rewrite <- (code_decode x) at 2. apply code_perm.
    rewrite (decode_code []). now rewrite app_nil_r.
  - intros l. apply symmetric. symmetry.
    induction l; simpl; rewrite decode_code; auto. rewrite decode_code, IHl. reflexivity.
Qed.
End Vacuous.

