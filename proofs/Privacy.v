(* thm:privacy-lifting. *)
From Coq Require Import List Reals Lra Bool.
Import ListNotations.
Local Open Scope R_scope.

(* --- central: any probability, on any events.  psi has to be measurable, which the paper does not say. *)
Section Central.
Variables (D M Y : Type) (evM : (M -> Prop) -> Prop) (evY : (Y -> Prop) -> Prop).
Variables (adjacent : D -> D -> Prop) (Q : D -> M) (dist : M -> M -> R) (Delta : R).
Variables (mech : M -> (M -> Prop) -> R).          (* Pr[R(m) in E] *)
Variables (psi : M -> Y) (eps delta : R).
Hypothesis sensitivity : forall x x', adjacent x x' -> dist (Q x) (Q x') <= Delta.
Hypothesis private : forall s s' E, dist s s' <= Delta -> evM E -> mech s E <= exp eps * mech s' E + delta.
Hypothesis psi_measurable : forall E, evY E -> evM (fun s => E (psi s)).
Definition release (x : D) (E : Y -> Prop) : R := mech (Q x) (fun s => E (psi s)).
Theorem central_lifting x x' E : adjacent x x' -> evY E -> release x E <= exp eps * release x' E + delta.
Proof. intros A H. unfold release. apply private; auto. Qed.
End Central.

(* --- local: independent randomizers with finitely many outcomes *)
Definition prob (Y : Type) := list (R * Y).
Definition sumR {X} (f : X -> R) (l : list X) : R := fold_right (fun x s => f x + s) 0 l.
Definition pr {Y} (d : prob Y) (E : Y -> bool) : R := sumR (fun wy => if E (snd wy) then fst wy else 0) d.
Definition nonneg {Y} (d : prob Y) : Prop := Forall (fun wy => 0 <= fst wy) d.
Definition ret {Y} (y : Y) : prob Y := [(1, y)].
Definition bind {X Y} (d : prob X) (f : X -> prob Y) : prob Y :=
  flat_map (fun wx => map (fun vy => (fst wx * fst vy, snd vy)) (f (snd wx))) d.
Definition image {X Y} (f : X -> Y) (d : prob X) : prob Y := map (fun wx => (fst wx, f (snd wx))) d.
Definition within {Y} (eps : R) (d d' : prob Y) : Prop := forall E, pr d E <= exp eps * pr d' E.

Lemma sumR_app {X} (f : X -> R) l m : sumR f (l ++ m) = sumR f l + sumR f m.
Proof. unfold sumR. induction l as [|a l IH]; simpl; [|rewrite IH]; ring. Qed.
Lemma sumR_ext {X} (f g : X -> R) l : (forall x, f x = g x) -> sumR f l = sumR g l.
Proof. intros H. unfold sumR. induction l as [|a l IH]; simpl; [|rewrite IH, H]; ring. Qed.
Lemma sumR_scale {X} c (f : X -> R) l : sumR (fun x => c * f x) l = c * sumR f l.
Proof. unfold sumR. induction l as [|a l IH]; simpl; [|rewrite IH]; ring. Qed.
Lemma sumR_plus {X} (f g : X -> R) l : sumR (fun x => f x + g x) l = sumR f l + sumR g l.
Proof. unfold sumR. induction l as [|a l IH]; simpl; [|rewrite IH]; ring. Qed.
Lemma sumR_swap {X Y} (f : X -> Y -> R) l m : sumR (fun x => sumR (f x) m) l = sumR (fun y => sumR (fun x => f x y) l) m.
Proof.
  induction l as [|a l IH]; simpl. { symmetry. induction m as [|b m IHm]; simpl; [|rewrite IHm]; ring. }
  rewrite IH. rewrite <- (sumR_plus (f a)). reflexivity.
Qed.
Lemma sumR_map {X Y} (f : Y -> R) (g : X -> Y) l : sumR f (map g l) = sumR (fun x => f (g x)) l.
Proof. unfold sumR. induction l as [|a l IH]; simpl; [|rewrite IH]; ring. Qed.
Lemma sumR_le {X} (f g : X -> R) l : Forall (fun x => f x <= g x) l -> sumR f l <= sumR g l.
Proof. unfold sumR. induction 1; simpl; lra. Qed.

Lemma pr_bind {X Y} (d : prob X) (f : X -> prob Y) E : pr (bind d f) E = sumR (fun wx => fst wx * pr (f (snd wx)) E) d.
Proof.
  unfold pr, bind. induction d as [|[w x] d IH]; simpl; auto. rewrite sumR_app, IH, sumR_map. f_equal.
  rewrite <- sumR_scale. apply sumR_ext. intros [v y]. simpl. destruct (E y); ring.
Qed.
Lemma pr_image {X Y} (f : X -> Y) d E : pr (image f d) E = pr d (fun x => E (f x)).
Proof. unfold pr, image. rewrite sumR_map. reflexivity. Qed.
Lemma pr_nonneg {Y} (d : prob Y) E : nonneg d -> 0 <= pr d E.
Proof. unfold pr, sumR, nonneg. induction 1; simpl; [lra|]. destruct (E (snd x)); lra. Qed.

(* Closure under post-processing. *)
Theorem post_processing {X Y} (f : X -> Y) eps d d' : within eps d d' -> within eps (image f d) (image f d').
Proof. intros H E. rewrite !pr_image. apply H. Qed.

Section Local.
Variables (M Y : Type) (op : M -> M -> M) (e : M) (psi : M -> Y).
Definition merge (ds : list (prob M)) : prob M :=
  fold_right (fun d acc => bind d (fun x => image (op x) acc)) (ret e) ds.

Lemma pr_merge_cons d ds E : pr (merge (d :: ds)) E = sumR (fun wx => fst wx * pr (merge ds) (fun y => E (op (snd wx) y))) d.
Proof. simpl. rewrite pr_bind. apply sumR_ext. intros. now rewrite pr_image. Qed.
(* The other way round: first what the others send. *)
Lemma pr_merge_swap d ds E : pr (merge (d :: ds)) E = sumR (fun vy => fst vy * pr d (fun x => E (op x (snd vy)))) (merge ds).
Proof.
  rewrite pr_merge_cons. unfold pr.
  rewrite (sumR_ext _ (fun wx => sumR (fun vy => if E (op (snd wx) (snd vy)) then fst wx * fst vy else 0) (merge ds))).
  2:{ intros [w x]. rewrite <- sumR_scale. apply sumR_ext. intros [v y]. simpl. destruct (E (op x y)); ring. }
  rewrite sumR_swap. apply sumR_ext. intros [v y]. rewrite <- sumR_scale. apply sumR_ext. intros [w x]. simpl.
  destruct (E (op x y)); ring.
Qed.
Lemma merge_nonneg ds : Forall nonneg ds -> nonneg (merge ds).
Proof.
  induction 1; simpl. { repeat constructor. simpl. lra. }
  unfold nonneg, bind in *. apply Forall_flat_map. eapply Forall_impl; [|exact H]. intros [w z] W. simpl in *.
  apply Forall_map. unfold image. apply Forall_map. eapply Forall_impl; [|exact IHForall]. intros [v y] V. simpl in *.
  now apply Rmult_le_pos.
Qed.

Theorem local_lifting eps before d d' after : Forall nonneg before -> Forall nonneg after -> within eps d d' ->
  within eps (image psi (merge (before ++ d :: after))) (image psi (merge (before ++ d' :: after))).
Proof.
  intros Nb Na W. apply post_processing. induction Nb as [|b before Hb Nb IH]; intros E; simpl app.
  - rewrite !pr_merge_swap, <- sumR_scale. apply sumR_le.
    eapply Forall_impl; [|apply (merge_nonneg after Na)]. intros [v y] V. simpl in *.
    pose proof (W (fun x => E (op x y))). replace (exp eps * (v * pr d' (fun x => E (op x y)))) with (v * (exp eps * pr d' (fun x => E (op x y)))) by ring.
    now apply Rmult_le_compat_l.
  - rewrite !pr_merge_cons, <- sumR_scale. apply sumR_le. eapply Forall_impl; [|exact Hb]. intros [w x] Wx. simpl in *.
    pose proof (IH (fun y => E (op x y))). replace (exp eps * (w * pr (merge (before ++ d' :: after)) (fun y => E (op x y))))
      with (w * (exp eps * pr (merge (before ++ d' :: after)) (fun y => E (op x y)))) by ring.
    now apply Rmult_le_compat_l.
Qed.
End Local.
