(* thm:gradient-expressibility over the real numbers, with Coquelicot's Frechet derivative. *)
From Coq Require Import List Arith Lia Bool Reals Lra.
From Coquelicot Require Import Coquelicot.
Import ListNotations.
From Starfold Require Import Index Lang Sem Rounds.
Local Open Scope R_scope.

Definition rsum (l : list R) : R := fold_right Rplus 0 l.

Section Grad.
Context {S U B A : Type} (I : meaning R S U B A) (L : lawful I).
Hypothesis sum_is_sum : forall l, iA I (asum I) l = rsum l.
(* The space of parameters: any normed space, whose points are read as tensors. *)
Context {V : NormedModule R_AbsRing} (val : V -> idx -> R).
Notation expr := (@expr U B A).
Notation has_type := (has_type (mg I)).
Notation localb := (localb (mg I)).

Definition dot (s : shape) (g h : idx -> R) : R := rsum (map (fun i => g i * h i) (indices s)).
(* g is the gradient of f at v, as a tensor of shape s: the derivative is the inner product with it. *)
Definition gradient (s : shape) (f : V -> R) (v : V) (g : idx -> R) : Prop :=
  filterdiff f (locally v) (fun h => dot s g (val h)).

Lemma rsum_app l m : rsum (l ++ m) = rsum l + rsum m.
Proof. unfold rsum. induction l as [|a l IH]; simpl; [|rewrite IH]; ring. Qed.
Lemma rsum_zero {X} (l : list X) : rsum (map (fun _ => 0) l) = 0.
Proof. unfold rsum. induction l as [|a l IH]; simpl; [|rewrite IH]; ring. Qed.
Lemma dot_plus s g g' h : dot s (fun i => g i + g' i) h = dot s g h + dot s g' h.
Proof. unfold dot, rsum. induction (indices s) as [|a l IH]; simpl; [|rewrite IH]; ring. Qed.
Lemma dot_zero s h : dot s (fun _ => 0) h = 0.
Proof. transitivity (rsum (map (fun _ => 0) (indices s))); [|apply rsum_zero]. unfold dot. f_equal. apply map_ext. intros. ring. Qed.

(* The gradient of a finite sum. *)
Lemma gradient_rsum s v (X : Type) (f : X -> V -> R) (g : X -> idx -> R) (l : list X) :
  (forall x, In x l -> gradient s (f x) v (g x)) ->
  gradient s (fun u => rsum (map (fun x => f x u) l)) v (fun i => rsum (map (fun x => g x i) l)).
Proof.
  unfold gradient. induction l; simpl; intros H.
  - apply filterdiff_ext_lin with (fun _ => zero). { apply filterdiff_const. }
    intros h. now rewrite dot_zero.
  - apply filterdiff_ext_lin with (fun h => plus (dot s (g a) (val h)) (dot s (fun i => rsum (map (fun x => g x i) l)) (val h))).
    + apply (filterdiff_plus_fct (f a) (fun u => rsum (map (fun x => f x u) l))); auto.
    + intros h. rewrite dot_plus. reflexivity.
Qed.

(* A record-axis sum, spelled out: all records of all clients. *)
Definition records (m : nat) (cnt : nat -> nat -> nat) (k : nat) : list (nat * nat) :=
  flat_map (fun c => map (fun a => (c, a)) (seq 0 (cnt c k))) (seq 0 m).
Lemma record_sum m cnt G rho (e : expr) k d c i : has_type G e (Star k :: d) -> mg I (asum I) = true ->
  deval I m cnt G rho (Agg (asum I) 0 e) c i = rsum (map (fun ca => deval I m cnt G rho e (fst ca) (snd ca :: i)) (records m cnt k)).
Proof.
  intros H M. cbn [deval]. unfold Sem.tyd. rewrite (typeof_complete _ _ _ _ H). simpl.
  rewrite <- (map_map (fun c' => fiber 0 (cnt c' k) (deval I m cnt G rho e c') i) (enc I (asum I))).
  rewrite <- (merge_concat I L) by auto. rewrite <- (fin_enc I L) by auto. rewrite sum_is_sum. f_equal.
  unfold records, fiber, ins. simpl. rewrite <- flat_map_concat_map.
  generalize (seq 0 m) as cs. induction cs; simpl; auto. rewrite map_app, map_map, IHcs. reflexivity.
Qed.

(* theta is the variable `p`; everything else is given. *)
Definition at_theta (p : nat) (rho : nat -> nat -> idx -> R) (v : V) : nat -> nat -> idx -> R :=
  fun x c => if (x =? p)%nat then val v else rho x c.

(* def:representably-differentiable-loss: loss and gamma per record, client-local. *)
Definition representably_differentiable (G : ctx) (p k : nat) (s : list nat) (loss gamma : expr) : Prop :=
  has_type G loss [Star k] /\ localb G loss = true /\
  has_type G gamma (Star k :: map Sz s) /\ localb G gamma = true /\
  forall n r a v, (a < n k)%nat ->
    gradient s (fun u => leval I G n (fun x => if (x =? p)%nat then val u else r x) loss [a]) v
               (fun i => leval I G n (fun x => if (x =? p)%nat then val v else r x) gamma (a :: i)).

(* thm:gradient-expressibility: the gradient of what `sum[*](loss)` computes is what `sum[*](gamma)` computes, which is a
   component of a round (so it merges by the sum) of shape s. *)
Theorem gradient_expressibility G p k s loss gamma m cnt rho c : representably_differentiable G p k s loss gamma ->
  (forall v, gradient s (fun u => deval I m cnt G (at_theta p rho u) (Agg (asum I) 0 loss) c []) v
                        (deval I m cnt G (at_theta p rho v) (Agg (asum I) 0 gamma) c)) /\
  component I G (Agg (asum I) 0 gamma) /\ has_type G (Agg (asum I) 0 gamma) (map Sz s).
Proof.
  intros (Hl & Ll & Hg & Lg & D). pose proof (asum_mg I L) as M.
  assert (Hs : shared (map Sz s) = true) by (unfold shared; rewrite forallb_forall; intros d X; apply in_map_iff in X; destruct X as (? & <- & _); auto).
  assert (Hc : has_type G (Agg (asum I) 0 gamma) (map Sz s)) by (apply (TExpose (mg I) G (asum I) 0 gamma k (Star k :: map Sz s)); auto).
  split; [|split]; auto.
  - intros v. unfold gradient.
    apply filterdiff_ext with (fun u => rsum (map (fun ca => deval I m cnt G (at_theta p rho u) loss (fst ca) [snd ca]) (records m cnt k))).
    { intros u. symmetry. now apply (record_sum m cnt G _ loss k []). }
    apply filterdiff_ext_lin with (fun h => dot s (fun i => rsum (map (fun ca => deval I m cnt G (at_theta p rho v) gamma (fst ca) (snd ca :: i)) (records m cnt k))) (val h)).
    2:{ intros h. unfold dot. f_equal. apply map_ext. intros i. now rewrite (record_sum m cnt G _ gamma k (map Sz s)). }
    apply (gradient_rsum s v _ (fun ca u => deval I m cnt G (at_theta p rho u) loss (fst ca) [snd ca])
                               (fun ca i => deval I m cnt G (at_theta p rho v) gamma (fst ca) (snd ca :: i))).
    intros [c' a] X. simpl. unfold records in X. apply in_flat_map in X. destruct X as (c0 & _ & X).
    apply in_map_iff in X. destruct X as (a0 & E & X). inversion E; subst. apply in_seq in X.
    specialize (D (cnt c') (fun x => rho x c') a v ltac:(lia)). unfold gradient in *.
    eapply filterdiff_ext; [|eapply filterdiff_ext_lin; [exact D|]].
    + intros u. symmetry. rewrite (client_locality I m cnt G _ loss [Star k] Hl Ll). unfold at_theta.
      assert (Z : forall e i, leval I G (cnt c') (fun x : nat => (if (x =? p)%nat then val u else rho x c')) e i =
                             leval I G (cnt c') (fun x : nat => (fun x0 c1 => if (x0 =? p)%nat then val u else rho x0 c1) x c') e i) by reflexivity.
      exact (eq_sym (Z loss [a])).
    + intros h. unfold dot. f_equal. apply map_ext. intros i. f_equal.
      rewrite (client_locality I m cnt G _ gamma _ Hg Lg). reflexivity.
  - split; [eauto|]. split.
    + simpl. now rewrite (typeof_complete _ _ _ _ Hg).
    + simpl. now rewrite Lg.
Qed.
End Grad.
