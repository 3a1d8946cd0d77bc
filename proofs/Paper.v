(* The paper's definitions and theorems by their labels, from Rounds.v. *)
From Coq Require Import List Arith Lia Bool Permutation.
Import ListNotations.
From Starfold Require Import Index Lang Sem Rounds.

Section Paper.
Context {K S U B A : Type} (I : meaning K S U B A) (L : lawful I).
Notation expr := (@expr U B A).
Notation has_type := (has_type (mg I)).
Notation localb := (localb (mg I)).
Notation tensor := (@tensor K).
Notation tyd := (tyd I).
Notation component := (component I).

(* A shared-output computation: a value for every federation and all its data. *)
Definition computation := forall (m : nat) (cnt : nat -> nat -> nat) (rho : nat -> nat -> tensor), tensor.

(* def:shared-state-factorization.  dims is fixed before anything is known of clients and records. *)
Record factorization (t : shape) (sigma : computation) := {
  dims : list nat;
  inm x := Forall2 (fun d (xi : list S) => length xi = d) dims x;
  plus : list (list S) -> list (list S) -> list (list S);
  zero : list (list S);
  phi : (nat -> nat) -> (nat -> tensor) -> list (list S);
  psi : list (list S) -> tensor;
  plus_in : forall x y, inm x -> inm y -> inm (plus x y);
  zero_in : inm zero;
  phi_in : forall n r, inm (phi n r);
  plus_assoc : forall x y z, inm x -> inm y -> inm z -> plus x (plus y z) = plus (plus x y) z;
  plus_comm : forall x y, inm x -> inm y -> plus x y = plus y x;
  plus_zero : forall x, inm x -> plus x zero = x;
  factors : forall m cnt rho i, 0 < m -> valid t i ->
    sigma m cnt rho i = psi (fold_right plus zero (map (fun c => phi (cnt c) (fun x => rho x c)) (seq 0 m))) i }.

(* def:one-round-typed-program *)
Definition one_round (G : ctx) (gs : list expr) (h : expr) (T : ty) : Prop :=
  Forall (component G) gs /\ has_type (map (tyd G) gs) h T.
Definition out (T : ty) : shape := ext (fun _ => 0) T.
Definition decode (G : ctx) (gs : list expr) (h : expr) (v : nat -> tensor) : tensor :=
  leval I (map (tyd G) gs) (fun _ => 0) v h.
Definition value m cnt G rho (gs : list expr) (x : nat) : tensor := deval I m cnt G rho (nth x gs (Var 0)) 0.
Definition induced (G : ctx) (gs : list expr) (h : expr) : computation :=
  fun m cnt rho => decode G gs h (value m cnt G rho gs).
Definition induces G gs h T (sigma : computation) : Prop := one_round G gs h T /\
  forall m cnt rho i, 0 < m -> valid (out T) i -> sigma m cnt rho i = induced G gs h m cnt rho i.

(* In a context without stars everything is shared and client-local: a shared-only expression. *)
Lemma shared_only G (e : expr) T : Forall (fun T => shared T = true) G -> has_type G e T ->
  shared T = true /\ localb G e = true.
Proof.
  intros F H. induction H; cbn [Lang.localb Lang.exposes]; rewrite ?andb_true_iff.
  - rewrite Forall_forall in F. split; auto. apply F. eapply nth_error_In; eauto.
  - destruct IHhas_type. auto.
  - destruct IHhas_type1 as [S1 L1], IHhas_type2 as [S2 L2]. split; auto.
    unfold joinT, join in H1. destruct (zipM _ _ _) eqn:Z; try discriminate. destruct (stars l <=? 1); inversion H1; subst.
    assert (P : forall n T, shared T = true -> shared (pad (Sz 1) n T) = true).
    { intros n T0 HT. unfold pad, shared. rewrite forallb_app. fold (shared T0). rewrite HT, andb_true_r.
      induction (n - length T0); simpl; auto. }
    apply (P (Nat.max (length T1) (length T2))) in S1, S2.
    clear - Z S1 S2. revert Z S1 S2. generalize (pad (Sz 1) (Nat.max (length T1) (length T2)) T1).
    generalize (pad (Sz 1) (Nat.max (length T1) (length T2)) T2). intros b a. revert b T.
    induction a as [|d a IH]; destruct b as [|d' b]; simpl; intros T Z S1 S2; try discriminate. { now inversion Z. }
    destruct (djoin d d') eqn:D; try discriminate. destruct (zipM djoin a b) eqn:Zr; inversion Z; subst. simpl.
    apply andb_true_iff in S1, S2. destruct S1, S2. rewrite (IH b l Zr) by auto. rewrite andb_true_r.
    unfold djoin in D. destruct (dim_eqb d d'); [|destruct (is_one d); [|destruct (is_one d')]]; inversion D; subst; auto.
  - destruct IHhas_type. rewrite (typeof_complete _ _ _ _ H), H0. repeat split; auto.
    destruct (nth_error_cut _ _ _ H0) as (x & y & -> & _ & ->). unfold shared in *. rewrite forallb_app in *. simpl in *. auto.
  - exfalso. destruct IHhas_type as [S1 _]. unfold shared in S1. rewrite forallb_forall in S1.
    specialize (S1 _ (nth_error_In _ _ H0)). discriminate.
  - destruct IHhas_type. split; auto. now rewrite perm_shared.
  - destruct IHhas_type1 as [S1 L1], IHhas_type2 as [S2 L2]. rewrite (typeof_complete _ _ _ _ H).
    destruct d1, d2; simpl in *; try discriminate. auto.
  - destruct IHhas_type1 as [S1 _]. destruct d1; simpl in S1; discriminate.
Qed.

(* A shared-only expression reads its variables at valid indices only. *)
Lemma leval_valid G (e : expr) T r r' : Forall (fun T => shared T = true) G -> has_type G e T ->
  (forall x Tx i, nth_error G x = Some Tx -> valid (out Tx) i -> r x i = r' x i) ->
  forall i, valid (out T) i -> leval I G (fun _ => 0) r e i = leval I G (fun _ => 0) r' e i.
Proof.
  intros F H E i V. destruct (shared_only G e T F H) as [Sh Lo].
  set (z := fun _ _ : nat => 0).
  pose (rO := fun x => match nth_error G x with Some Tx => Some (ext (tot 1 z) Tx, r x) | None => None end).
  assert (ok : forall r'', (forall x Tx i, nth_error G x = Some Tx -> valid (out Tx) i -> r x i = r'' x i) ->
                           env_ok 1 z G rO (fun x _ => r'' x)).
  { intros r'' E' x Tx N. exists (r x). unfold rO. rewrite N. split; auto. intros c j C Vj.
    rewrite gidx_shared; eauto. - rewrite Forall_forall in F. apply F. eapply nth_error_In; eauto.
    - apply valid_length in Vj. now rewrite ext_length in Vj. }
  destruct (virtual_global_consistency I L 1 z G rO _ (ok r ltac:(auto)) e T H) as (t & O & V1).
  destruct (virtual_global_consistency I L 1 z G rO _ (ok r' E) e T H) as (t' & O' & V2).
  rewrite O in O'. inversion O'; subst t'.
  specialize (V1 0 i ltac:(lia) V). specialize (V2 0 i ltac:(lia) V). rewrite V1 in V2.
  rewrite !(client_locality I 1 z G _ e T H Lo) in V2. exact V2.
Qed.

Lemma components_shared G gs : Forall (component G) gs -> Forall (fun T => shared T = true) (map (tyd G) gs).
Proof.
  intros F. apply Forall_forall. intros T X. apply in_map_iff in X. destruct X as (g & <- & X).
  rewrite Forall_forall in F. destruct (component_inv I L _ _ (F g X)) as (T & H & Sh & _).
  unfold Sem.tyd. now rewrite (typeof_complete _ _ _ _ H).
Qed.

Lemma components_merging G gs : Forall (component G) gs -> merging I gs.
Proof.
  intros F. unfold merging. eapply Forall_impl; [|exact F]. intros g C. simpl in C.
  destruct (component_inv I L _ _ C) as (T & _ & _ & M & _). exact M.
Qed.

(* What is decoded from the merged messages is what the program induces. *)
Theorem induced_factors G gs h T : one_round G gs h T -> forall m cnt rho i, 0 < m -> valid (out T) i ->
  induced G gs h m cnt rho i =
  decode G gs h (fun x => dec I G (nth x gs (Var 0))
    (nth x (mergeM I G gs (map (fun c => msgs I G (cnt c) (fun x => rho x c) gs) (seq 0 m))) [])) i.
Proof.
  intros (F & H) m cnt rho i M V. unfold induced, decode. eapply leval_valid; eauto using components_shared.
  intros x Tx j N Vj. rewrite nth_error_map in N. destruct (nth_error gs x) as [g|] eqn:Ng; inversion N; subst.
  unfold value. rewrite (nth_error_nth _ _ _ Ng). symmetry. apply component_factorizes; auto.
Qed.

(* thm:one-round-shared-state-factorization *)
Theorem one_round_factorization G gs h T sigma : induces G gs h T sigma -> factorization (out T) sigma.
Proof.
  intros ((F & H) & E).
  pose proof (components_merging _ _ F) as M.
  assert (inM_dims : forall x, inM I G gs x <-> Forall2 (fun d (xi : list S) => length xi = d) (map (fun g => size (shp I G g)) gs) x).
  { unfold inM. clear. induction gs; intros x; simpl; split; intros X; inversion X; subst; constructor; auto; now apply IHgs. }
  refine {| dims := map (fun g => size (shp I G g)) gs; plus := mop I gs; zero := munit I G gs;
            phi := fun n r => msgs I G n r gs;
            psi := fun s => decode G gs h (fun x => dec I G (nth x gs (Var 0)) (nth x s [])) |}; cbv zeta.
  - intros x y X Y. apply inM_dims. apply mop_closed; now apply inM_dims.
  - apply inM_dims, munit_closed.
  - intros. apply inM_dims, message_size.
  - intros x y z X Y Z. apply (mop_assoc I L G); auto; now apply inM_dims.
  - intros x y X Y. apply (mop_comm I L G); auto; now apply inM_dims.
  - intros x X. apply (mop_unit I L); auto; now apply inM_dims.
  - intros m cnt rho i C V. rewrite E by auto. now apply (induced_factors G gs h T).
Defined.

(* thm:one-round-realization, and with it the whole correspondence: a computation is induced by a one-round program exactly
   when it factors with encoders that are the messages of components and a decoder that is a shared-only expression. *)
Theorem one_round_correspondence G gs h T sigma : one_round G gs h T ->
  (induces G gs h T sigma <->
   forall m cnt rho i, 0 < m -> valid (out T) i -> sigma m cnt rho i =
     decode G gs h (fun x => dec I G (nth x gs (Var 0))
       (nth x (mergeM I G gs (map (fun c => msgs I G (cnt c) (fun x => rho x c) gs) (seq 0 m))) [])) i).
Proof.
  intros O. split.
  - intros (_ & E) m cnt rho i M V. rewrite E by auto. now apply (induced_factors G gs h T).
  - intros E. split; auto. intros m cnt rho i M V. rewrite E by auto. symmetry. now apply (induced_factors G gs h T).
Qed.

(* --- cor:one-round-shared-postprocessing *)
Fixpoint subst (f : nat -> expr) (e : expr) : expr :=
  match e with
  | Var x => f x | Un u e => Un u (subst f e) | Bin b e g => Bin b (subst f e) (subst f g)
  | Agg a j e => Agg a j (subst f e) | Perm l e => Perm l (subst f e) | MM e g => MM (subst f e) (subst f g)
  end.

Lemma subst_type G G' f (e : expr) T : has_type G e T ->
  (forall x Tx, nth_error G x = Some Tx -> has_type G' (f x) Tx) -> has_type G' (subst f e) T.
Proof.
  intros H F. induction H; simpl.
  - auto. - now constructor. - econstructor; eauto. - eapply TAgg; eauto. - eapply TExpose; eauto.
  - now constructor. - eapply TMM; eauto. - eapply TContract; eauto.
Qed.

Lemma leval_subst G G' n r f (e : expr) T : has_type G e T ->
  (forall x Tx, nth_error G x = Some Tx -> has_type G' (f x) Tx) ->
  forall i, leval I G' n r (subst f e) i = leval I G n (fun x => leval I G' n r (f x)) e i.
Proof.
  intros H F.
  assert (Ty : forall e T, has_type G e T -> tyd G' (subst f e) = tyd G e).
  { intros e0 T0 H0. unfold Sem.tyd. now rewrite (typeof_complete _ _ _ _ H0), (typeof_complete _ _ _ _ (subst_type _ _ _ _ _ H0 F)). }
  induction H; cbn [subst leval]; intros i; auto.
  - unfold ordU. now rewrite IHhas_type.
  - unfold ordB. now rewrite (Ty _ _ H), (Ty _ _ H0), IHhas_type1, IHhas_type2.
  - rewrite (Ty _ _ H). destruct (nth_error (tyd G e) j) as [[]|]; auto; unfold ordA, fiber; f_equal; apply map_ext; auto.
  - rewrite (Ty _ _ H). destruct (nth_error (tyd G e) j) as [[]|]; auto; unfold ordA, fiber; f_equal; apply map_ext; auto.
  - unfold ordP. apply IHhas_type.
  - rewrite (Ty _ _ H). destruct (nth 1 _ _); unfold ordM, prods; f_equal; apply map_ext; intros; now rewrite IHhas_type1, IHhas_type2.
  - rewrite (Ty _ _ H). destruct (nth 1 _ _); unfold ordM, prods; f_equal; apply map_ext; intros; now rewrite IHhas_type1, IHhas_type2.
Qed.

Definition start {X} (ls : list (list X)) (j : nat) : nat := length (concat (firstn j ls)).
Lemma nth_error_start {X} : forall (ls : list (list X)) j l x v, nth_error ls j = Some l -> nth_error l x = Some v ->
  nth_error (concat ls) (start ls j + x) = Some v.
Proof.
  unfold start. induction ls; destruct j; simpl; intros; try discriminate.
  - inversion H; subst. rewrite nth_error_app1; auto. apply nth_error_Some. congruence.
  - rewrite app_length, <- Nat.add_assoc, nth_error_app2, Nat.add_comm, Nat.add_sub by lia. eauto.
Qed.

Theorem postprocessing_closure G (ps : list (list expr * expr * ty)) (H : expr) (T : ty) :
  Forall (fun p => one_round G (fst (fst p)) (snd (fst p)) (snd p)) ps -> has_type (map snd ps) H T ->
  exists gs h, one_round G gs h T /\ forall m cnt rho i, 0 < m -> valid (out T) i ->
    induced G gs h m cnt rho i =
    leval I (map snd ps) (fun _ => 0) (fun j => match nth_error ps j with
      | Some (gs, h, _) => induced G gs h m cnt rho | None => induced G [] (Var 0) m cnt rho end) H i.
Proof.
  intros F Ht. set (gss := map (fun p => fst (fst p)) ps).
  pose (f := fun j => match nth_error ps j with
                      | Some (_, h, _) => subst (fun x => Var (start gss j + x)) h | None => Var 0 end).
  assert (C : Forall (component G) (concat gss)).
  { apply Forall_forall. intros g X. apply in_concat in X. destruct X as (gs & X & Y). unfold gss in X.
    apply in_map_iff in X. destruct X as (p & <- & X). rewrite Forall_forall in F. destruct (F p X) as [F' _].
    rewrite Forall_forall in F'. auto. }
  assert (sh : forall j gs h Tj, nth_error ps j = Some (gs, h, Tj) -> forall x Tx, nth_error (map (tyd G) gs) x = Some Tx ->
            has_type (map (tyd G) (concat gss)) (Var (start gss j + x) : expr) Tx).
  { intros j gs h Tj N x Tx Nx. constructor. rewrite nth_error_map in *. destruct (nth_error gs x) as [g|] eqn:Ng; inversion Nx; subst.
    erewrite nth_error_start; eauto. unfold gss. rewrite nth_error_map, N. reflexivity. }
  assert (fT : forall j Tj, nth_error (map snd ps) j = Some Tj -> has_type (map (tyd G) (concat gss)) (f j) Tj).
  { intros j Tj N. rewrite nth_error_map in N. unfold f. destruct (nth_error ps j) as [[[gs h] Tj']|] eqn:Nj; inversion N; subst.
    rewrite Forall_forall in F. destruct (F _ (nth_error_In _ _ Nj)) as [_ Hh]. simpl in *. eapply subst_type; eauto. }
  exists (concat gss), (subst f H). split. { split; auto. eapply subst_type; eauto. }
  intros m cnt rho i M V. unfold induced at 1, decode. rewrite (leval_subst _ _ _ _ _ _ _ Ht fT).
  assert (Shs : Forall (fun T => shared T = true) (map snd ps)).
  { apply Forall_forall. intros Tj X. apply in_map_iff in X. destruct X as ([[gs h] Tj'] & <- & X).
    rewrite Forall_forall in F. destruct (F _ X) as [Fc Hh]. simpl in *.
    exact (proj1 (shared_only _ _ _ (components_shared _ _ Fc) Hh)). }
  eapply leval_valid; eauto. intros j Tj k N Vk. unfold f. rewrite nth_error_map in N.
  destruct (nth_error ps j) as [[[gs h] Tj']|] eqn:Nj; inversion N; subst.
  rewrite Forall_forall in F. destruct (F _ (nth_error_In _ _ Nj)) as [Fc Hh]. simpl in *.
  rewrite (leval_subst _ _ _ _ _ _ _ Hh (sh j gs h Tj Nj)). cbn [leval]. unfold induced, decode.
  eapply leval_valid; eauto using components_shared. intros x Tx l Nx Vl.
  rewrite nth_error_map in Nx. destruct (nth_error gs x) as [g|] eqn:Ng; inversion Nx; subst.
  unfold value. erewrite (nth_error_nth (concat gss)); [|eapply nth_error_start; eauto; unfold gss; now rewrite nth_error_map, Nj].
  now rewrite (nth_error_nth _ _ _ Ng).
Qed.

(* prop:client-locality, prop:exposure-discipline and prop:virtual-global-consistency are theorems of Rounds.v, Lang.v and Sem.v;
   thm:iterative-shared-state-factorization with prop:round-wise-shared-memory is run_correct of Rounds.v. *)
End Paper.
