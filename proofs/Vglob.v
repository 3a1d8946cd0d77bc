(* The virtual global tensor exists and is unique: the relation vglob of Sem.v is def:virtual-global-tensor. *)
From Coq Require Import List Arith Lia Bool.
Import ListNotations.
From Starfold Require Import Index Lang Sem.

Section Vglob.
Context {K : Type} (m : nat) (cnt : nat -> nat -> nat).
Notation off := (off cnt). Notation tot := (tot m cnt).

(* Whose record is number h? *)
Definition locate (k h : nat) : nat := match find (fun c => h <? off (S c) k) (seq 0 m) with Some c => c | None => 0 end.

Lemma find_first (p : nat -> bool) : forall n s c, s <= c < s + n -> p c = true -> (forall c', s <= c' < c -> p c' = false) ->
  find p (seq s n) = Some c.
Proof.
  induction n; simpl; intros s c C P F; [lia|]. destruct (Nat.eq_dec s c) as [->|N]. { now rewrite P. }
  rewrite F by lia. apply IHn; auto; [lia|]. intros; apply F; lia.
Qed.
Lemma locate_off k c q : c < m -> q < cnt c k -> locate k (off c k + q) = c.
Proof.
  intros C Q. unfold locate. rewrite find_first with (c := c); auto; try lia.
  - rewrite off_S. apply Nat.ltb_lt. lia.
  - intros c' H. apply Nat.ltb_ge. pose proof (off_le cnt (S c') c k ltac:(lia)). lia.
Qed.
Lemma locate_all k h : h < tot k -> exists c q, c < m /\ q < cnt c k /\ h = off c k + q.
Proof.
  unfold Sem.tot. intros H. clear - H. induction m as [|n IH]. { unfold Sem.off in H. simpl in H. lia. }
  rewrite off_S in H. destruct (Nat.lt_ge_cases h (off n k)) as [L|L].
  - destruct (IH L) as (c & q & C & Q & ->). exists c, q. repeat split; auto.
  - exists n, (h - off n k). repeat split; lia.
Qed.

Fixpoint who (T : ty) (i : idx) : nat :=
  match T, i with Star k :: _, h :: _ => locate k h | Sz _ :: T, _ :: i => who T i | _, _ => 0 end.
Definition lidx (o : nat -> nat) (T : ty) (i : idx) : idx :=
  map2 (fun d q => match d with Sz _ => q | Star k => q - o k end) T i.

Lemma lidx_gidx o : forall T i, length i = length T -> lidx o T (gidx o T i) = i.
Proof.
  unfold lidx, gidx. induction T; destruct i; simpl; intros; auto; try discriminate. f_equal; auto. destruct a; lia.
Qed.
Lemma who_gidx c : c < m -> forall T i, valid (ext (cnt c) T) i -> shared T = false -> who T (gidx (off c) T i) = c.
Proof.
  intros C. induction T; intros i V S; [discriminate|]. inversion V; subst. destruct a; simpl in *.
  - now apply IHT. - now apply locate_off.
Qed.

Theorem vglob_exists T (X : nat -> idx -> K) :
  (shared T = true -> forall c i, c < m -> valid (ext (cnt c) T) i -> X c i = X 0 i) -> exists t, vglob m cnt T X t.
Proof.
  intros H. destruct (shared T) eqn:Sh.
  - exists (X 0). intros c i C V. rewrite gidx_shared; auto. { symmetry. auto. }
    apply valid_length in V. now rewrite ext_length in V.
  - exists (fun i => X (who T i) (lidx (off (who T i)) T i)). intros c i C V. rewrite who_gidx by auto.
    rewrite lidx_gidx; auto. apply valid_length in V. now rewrite ext_length in V.
Qed.

(* Every place of the virtual global tensor belongs to a client. *)
Lemma gidx_onto T : 0 < m -> wf T -> forall i, valid (ext tot T) i ->
  exists c j, c < m /\ valid (ext (cnt c) T) j /\ gidx (off c) T j = i.
Proof.
  intros M. unfold wf, stars. induction T as [|d T IH]; intros W i V; inversion V as [|x p l ? Hx Vl]; subst.
  { exists 0, []. repeat split; auto; constructor. }
  destruct d; simpl in *.
  - destruct (IH W l Vl) as (c & j & C & Vj & E). exists c, (x :: j). repeat split; auto. { constructor; auto. }
    unfold gidx in *. simpl. now rewrite E.
  - destruct (locate_all k x Hx) as (c & q & C & Q & ->). exists c, (q :: l).
    assert (Sh : shared T = true) by (apply shared_stars; unfold stars; lia).
    repeat split; auto. { constructor; auto. eapply valid_ext_shared; eauto. }
    unfold gidx in *. simpl. f_equal. fold (gidx (off c) T l). apply gidx_shared; auto.
    apply valid_length in Vl. now rewrite ext_length in Vl.
Qed.

Theorem vglob_unique T (X : nat -> idx -> K) t t' : 0 < m -> wf T -> vglob m cnt T X t -> vglob m cnt T X t' ->
  forall i, valid (ext tot T) i -> t i = t' i.
Proof.
  intros M W V V' i Vi. destruct (gidx_onto T M W i Vi) as (c & j & C & Vj & <-). now rewrite V, V'.
Qed.
End Vglob.
