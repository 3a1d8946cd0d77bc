(* Client-locality, messages of fixed size, rounds; every well-typed program is rounds, and the rounds compute
   what the ordinary evaluation of the program on all records computes. *)
From Coq Require Import List Arith Lia Bool Permutation.
Import ListNotations.
From Starfold Require Import Index Lang Sem.

Section Rounds.
Context {K S U B A : Type} (I : meaning K S U B A) (L : lawful I).
Notation expr := (@expr U B A).
Notation typeof := (typeof (mg I)).
Notation has_type := (has_type (mg I)).
Notation exposes := (exposes (mg I)).
Notation localb := (localb (mg I)).
Notation tensor := (@tensor K).
Notation tyd := (tyd I).

(* --- one client alone: n are its record counts, rho what it has *)
Fixpoint leval (G : ctx) (n : nat -> nat) (rho : nat -> tensor) (e : expr) : tensor :=
  match e with
  | Var x => rho x
  | Un u e => ordU I u (leval G n rho e)
  | Bin b e f => ordB I b (ext n (tyd G e)) (ext n (tyd G f)) (leval G n rho e) (leval G n rho f)
  | Agg a j e =>
      match nth_error (tyd G e) j with
      | Some (Star k) => ordA I a j (n k) (leval G n rho e)
      | Some (Sz p) => ordA I a j p (leval G n rho e)
      | None => leval G n rho e
      end
  | Perm l e => ordP l (leval G n rho e)
  | MM e f =>
      match nth 1 (tyd G e) (Sz 0) with
      | Star k => ordM I (n k) (leval G n rho e) (leval G n rho f)
      | Sz p => ordM I p (leval G n rho e) (leval G n rho f)
      end
  end.

(* prop:client-locality for expressions, and the local realization e^_n of thm:one-round-...: one function of
   the client's own counts and tensors and the shared values, the same for all clients and federations. *)
Theorem client_locality m cnt G rho e T : has_type G e T -> localb G e = true ->
  forall c i, deval I m cnt G rho e c i = leval G (cnt c) (fun x => rho x c) e i.
Proof.
  intros H. induction H; cbn [localb deval leval]; rewrite ?andb_true_iff, ?negb_true_iff; intros Lo c i; auto.
  - unfold ordU. rewrite IHhas_type; tauto.
  - unfold ordB. rewrite IHhas_type1, IHhas_type2; tauto.
  - unfold Sem.tyd. rewrite (typeof_complete _ _ _ _ H), H0. unfold ordA, fiber. f_equal.
    apply map_ext. intros. apply IHhas_type; tauto.
  - exfalso. destruct Lo as [Lo _]. simpl in Lo. rewrite (typeof_complete _ _ _ _ H), H0 in Lo. discriminate.
  - unfold ordP. apply IHhas_type; tauto.
  - unfold Sem.tyd. rewrite (typeof_complete _ _ _ _ H). simpl. unfold ordM, prods. f_equal.
    apply map_ext. intros. rewrite IHhas_type1, IHhas_type2; tauto.
  - exfalso. destruct Lo as [Lo _]. simpl in Lo. rewrite (typeof_complete _ _ _ _ H) in Lo. discriminate.
Qed.

(* Nothing of another client can be seen in it: two federations that agree at c. *)
Corollary noninterference m m' cnt cnt' G rho rho' e T c : has_type G e T -> localb G e = true ->
  (forall k, cnt c k = cnt' c k) -> (forall x, rho x c = rho' x c) ->
  forall i, deval I m cnt G rho e c i = deval I m' cnt' G rho' e c i.
Proof.
  intros H Lo C R i. rewrite !(client_locality _ _ _ _ _ _ H Lo).
  assert (X : forall e i, leval G (cnt c) (fun x => rho x c) e i = leval G (cnt' c) (fun x => rho' x c) e i).
  { clear - C R. assert (E : forall T, ext (cnt c) T = ext (cnt' c) T).
    { intros. apply map_ext. intros []; auto. }
    induction e; cbn [leval]; intros i.
    - now rewrite R.
    - unfold ordU. now rewrite IHe.
    - unfold ordB. now rewrite !E, IHe1, IHe2.
    - destruct (nth_error _ j) as [[|]|]; auto; unfold ordA, fiber; rewrite ?C; f_equal; apply map_ext; auto.
    - unfold ordP. apply IHe.
    - destruct (nth 1 _ _); unfold ordM, prods; rewrite ?C; f_equal; apply map_ext; intros; now rewrite IHe1, IHe2. }
  apply X.
Qed.

(* --- one component g of a round: a fold of the record axis, or a contraction, of client-local operands *)
Definition component (G : ctx) (g : expr) : Prop :=
  (exists T, has_type G g T) /\ exposes G g = true /\ forallb (localb G) (args g) = true.

Definition sym (g : expr) : A := match g with Agg a _ _ => a | _ => asum I end.
Definition shp (G : ctx) (g : expr) : shape := ext (fun _ => 0) (tyd G g).   (* g is shared: no count is asked for *)

Definition senc (G : ctx) (n : nat -> nat) (rho : nat -> tensor) (g : expr) (i : idx) : S :=
  match g with
  | Agg a j e => match nth_error (tyd G e) j with
                 | Some (Star k) => enc I a (fiber j (n k) (leval G n rho e) i)
                 | _ => unit I a end
  | MM e f => match nth 1 (tyd G e) (Sz 0) with
              | Star k => enc I (asum I) (prods I (n k) (leval G n rho e) (leval G n rho f) i)
              | _ => unit I (asum I) end
  | _ => unit I (asum I)
  end.

(* What a client sends: phi of def:shared-state-factorization.  It is a function of its own data, and of shared values. *)
Definition msg (G : ctx) (n : nat -> nat) (rho : nat -> tensor) (g : expr) : list S :=
  map (senc G n rho g) (indices (shp G g)).
Definition msgs G n rho (gs : list expr) : list (list S) := map (msg G n rho) gs.

(* M, its merge and its zero, componentwise. *)
Definition inM (G : ctx) (gs : list expr) (x : list (list S)) : Prop :=
  Forall2 (fun g xi => length xi = size (shp G g)) gs x.
Definition mop (gs : list expr) (x y : list (list S)) : list (list S) :=
  map2 (fun g xy => map2 (op I (sym g)) (fst xy) (snd xy)) gs (combine x y).
Definition munit (G : ctx) (gs : list expr) : list (list S) :=
  map (fun g => repeat (unit I (sym g)) (size (shp G g))) gs.
Definition mergeM G gs (l : list (list (list S))) := fold_right (mop gs) (munit G gs) l.

Lemma component_inv G g : component G g -> exists T, has_type G g T /\ shared T = true /\ mg I (sym g) = true /\
  ((exists a j e k T', g = Agg a j e /\ has_type G e T' /\ nth_error T' j = Some (Star k) /\ localb G e = true) \/
   (exists e f d1 d2 k, g = MM e f /\ has_type G e [d1; Star k] /\ has_type G f [Star k; d2] /\
                        localb G e = true /\ localb G f = true)).
Proof.
  intros ((T & H) & E & Lo). exists T. split; auto. destruct H; simpl in E; try discriminate.
  - rewrite (typeof_complete _ _ _ _ H), H0 in E. discriminate.
  - simpl in Lo. rewrite andb_true_r in Lo. repeat split; auto. left. exists a, j, e, k, T. auto.
  - rewrite (typeof_complete _ _ _ _ H) in E. discriminate.
  - simpl in Lo. rewrite andb_true_r, andb_true_iff in Lo. repeat split; auto. { apply (asum_mg I L). }
    right. exists e, f, d1, d2, k. tauto.
Qed.

(* The size of a message depends on the program and its types: not on clients, counts or data. *)
Theorem message_size G n rho gs : inM G gs (msgs G n rho gs).
Proof.
  unfold inM, msgs. induction gs; simpl; constructor; auto. unfold msg. now rewrite map_length, indices_length.
Qed.

(* (M, mop, munit) is a commutative monoid. *)
Lemma map2_op_length a x y d : length x = d -> length y = d -> length (map2 (op I a) x y) = d.
Proof. intros. rewrite map2_length; congruence. Qed.

Lemma mop_closed G gs x y : inM G gs x -> inM G gs y -> inM G gs (mop gs x y).
Proof.
  unfold inM, mop. intros X. revert y. induction X; intros y0 Y; inversion Y; subst; simpl; constructor; auto.
  apply map2_op_length; auto.
Qed.
Lemma munit_closed G gs : inM G gs (munit G gs).
Proof. unfold inM, munit. induction gs; simpl; constructor; auto. apply repeat_length. Qed.

Definition merging gs := Forall (fun g => mg I (sym g) = true) gs.

Lemma map2_assoc a : mg I a = true -> forall x y z,
  map2 (op I a) x (map2 (op I a) y z) = map2 (op I a) (map2 (op I a) x y) z.
Proof. intros M. induction x; destruct y, z; simpl; auto. f_equal; auto. now apply (op_assoc I L). Qed.
Lemma map2_comm a : mg I a = true -> forall x y, map2 (op I a) x y = map2 (op I a) y x.
Proof. intros M. induction x; destruct y; simpl; auto. f_equal; auto. now apply (op_comm I L). Qed.
Lemma map2_unit a : mg I a = true -> forall x, map2 (op I a) x (repeat (unit I a) (length x)) = x.
Proof. intros M. induction x; simpl; auto. f_equal; auto. now apply (op_unit I L). Qed.

Lemma mop_assoc G gs x y z : merging gs -> inM G gs x -> inM G gs y -> inM G gs z ->
  mop gs x (mop gs y z) = mop gs (mop gs x y) z.
Proof.
  intros M X. revert y z. induction X as [|g xi gs x Hx X IH]; intros y z Y Z; auto.
  inversion Y as [|? yi ? y' Hy Y']; inversion Z as [|? zi ? z' Hz Z']; inversion M; subst.
  unfold mop in *. simpl. f_equal; auto. now apply map2_assoc.
Qed.
Lemma mop_comm G gs x y : merging gs -> inM G gs x -> inM G gs y -> mop gs x y = mop gs y x.
Proof.
  intros M X. revert y. induction X as [|g xi gs x Hx X IH]; intros y Y; inversion Y as [|? yi ? y' Hy Y']; subst; auto.
  inversion M; subst. unfold mop in *. simpl. f_equal; auto. now apply map2_comm.
Qed.
Lemma mop_unit G gs x : merging gs -> inM G gs x -> mop gs x (munit G gs) = x.
Proof.
  intros M X. induction X as [|g xi gs x Hx X IH]; auto. inversion M; subst. unfold mop, munit in *. simpl.
  f_equal; auto. rewrite <- Hx. now apply map2_unit.
Qed.

Lemma mergeM_closed G gs l : Forall (inM G gs) l -> inM G gs (mergeM G gs l).
Proof. induction 1; simpl. { apply munit_closed. } now apply mop_closed. Qed.

(* Messages may arrive and be merged in any order. *)
Theorem mergeM_perm G gs l l' : merging gs -> Forall (inM G gs) l -> Permutation l l' -> mergeM G gs l = mergeM G gs l'.
Proof.
  intros M F P. induction P; simpl; auto.
  - inversion F; subst. now rewrite IHP.
  - inversion F as [|? ? Fy F1]; subst. inversion F1 as [|? ? Fx F2]; subst. pose proof (mergeM_closed _ _ _ F2).
    rewrite !(mop_assoc G) by auto. now rewrite (mop_comm G gs y x).
  - rewrite IHP1 by auto. apply IHP2. eapply Permutation_Forall; eauto.
Qed.

(* One position of one component of the merged state. *)
Lemma nth_map2_op a x y d r : length x = d -> length y = d -> r < d ->
  nth r (map2 (op I a) x y) (unit I a) = op I a (nth r x (unit I a)) (nth r y (unit I a)).
Proof. intros. apply map2_nth; congruence. Qed.

Lemma mergeM_nth G gs l q g r : Forall (inM G gs) l -> nth_error gs q = Some g -> r < size (shp G g) ->
  nth r (nth q (mergeM G gs l) []) (unit I (sym g)) =
  mergeS I (sym g) (map (fun x => nth r (nth q x []) (unit I (sym g))) l).
Proof.
  intros F N R. induction F; simpl.
  - unfold munit. pose proof (nth_error_Some gs q). rewrite N in H. destruct H as [H _]. specialize (H ltac:(discriminate)).
    rewrite (nth_map_lt _ _ _ g []) by auto. rewrite (nth_error_nth _ _ _ N). apply nth_repeat.
  - rewrite <- IHF. pose proof (mergeM_closed _ _ _ F) as C. fold (mergeM G gs l). clear IHF F.
    revert q N x H. generalize dependent (mergeM G gs l). unfold inM, mop.
    induction gs; intros w C q N x H; destruct q; simpl in N; try discriminate; inversion H; inversion C; subst; simpl.
    + inversion N; subst. now apply nth_map2_op with (size (shp G g)).
    + now apply IHgs.
Qed.

(* psi reads the value of a component from the merged state. *)
Definition dec (G : ctx) (g : expr) (x : list S) : tensor :=
  fun i => fin I (sym g) (nth (rank (shp G g) i) x (unit I (sym g))).

Lemma shp_ext G g T n : has_type G g T -> shared T = true -> ext n T = shp G g.
Proof.
  intros H Sh. unfold shp, Sem.tyd. rewrite (typeof_complete _ _ _ _ H). clear H. unfold ext, shared in *.
  induction T; simpl in *; auto. destruct a; simpl in *; try discriminate. f_equal; auto.
Qed.

(* thm:one-round-shared-state-factorization, for each component: what the merged messages decode to
   is what the distributed semantics says. *)
Theorem component_factorizes m cnt G rho gs q g : Forall (component G) gs -> nth_error gs q = Some g ->
  forall c i, c < m -> valid (shp G g) i ->
  dec G g (nth q (mergeM G gs (map (fun c' => msgs G (cnt c') (fun x => rho x c') gs) (seq 0 m))) []) i =
  deval I m cnt G rho g c i.
Proof.
  intros F N c i C V. unfold dec.
  rewrite mergeM_nth; auto.
  2:{ apply Forall_forall. intros x X. apply in_map_iff in X. destruct X as (c' & <- & _). apply message_size. }
  2:{ now apply rank_lt. }
  rewrite map_map.
  assert (E : forall c', nth (rank (shp G g) i) (nth q (msgs G (cnt c') (fun x => rho x c') gs) []) (unit I (sym g)) =
                         senc G (cnt c') (fun x => rho x c') g i).
  { intros c'. unfold msgs. pose proof (nth_error_Some gs q) as Z. rewrite N in Z. destruct Z as [Z _].
    rewrite (nth_map_lt _ _ _ g []) by (apply Z; discriminate). rewrite (nth_error_nth _ _ _ N). unfold msg.
    rewrite (nth_map_lt _ _ _ i). 2:{ rewrite indices_length. now apply rank_lt. }
    rewrite (nth_error_nth _ _ _ (nth_indices _ _ V)). reflexivity. }
  rewrite (map_ext _ _ E). clear E.
  rewrite Forall_forall in F. specialize (F g (nth_error_In _ _ N)). apply component_inv in F.
  destruct F as (T & H & Sh & M & [(a & j & e & k & T' & -> & He & Nj & Le) | (e & f & d1 & d2 & k & -> & He & Hf & Le & Lf)]).
  - cbn [deval senc sym]. unfold Sem.tyd. rewrite (typeof_complete _ _ _ _ He), Nj. f_equal. f_equal.
    apply map_ext. intros c'. f_equal. unfold fiber. apply map_ext. intros h.
    symmetry. exact (client_locality m cnt G rho e T' He Le c' _).
  - cbn [deval senc sym]. unfold Sem.tyd. rewrite (typeof_complete _ _ _ _ He). simpl. f_equal. f_equal.
    apply map_ext. intros c'. f_equal. unfold prods. apply map_ext. intros h.
    now rewrite (client_locality m cnt G rho e _ He Le), (client_locality m cnt G rho f _ Hf Lf).
Qed.

(* --- programs as steps: ask the clients, or compute something shared from what is shared *)
Inductive step := Ask (gs : list expr) | Let (h : expr).

Definition step_types (G : ctx) (s : step) : ctx :=
  match s with Ask gs => map (tyd G) gs | Let h => [tyd G h] end.
Definition step_ok (G : ctx) (s : step) : Prop :=
  match s with
  | Ask gs => Forall (component G) gs
  | Let h => exists T, has_type G h T /\ localb G h = true /\ shared T = true
  end.
Fixpoint steps_ctx (G : ctx) (p : list step) : ctx :=
  match p with [] => G | s :: p => steps_ctx (G ++ step_types G s) p end.
Fixpoint steps_ok (G : ctx) (p : list step) : Prop :=
  match p with [] => True | s :: p => step_ok G s /\ steps_ok (G ++ step_types G s) p end.

(* The protocol.  Clients only ever send `msgs` of their own data. *)
Definition set {X} (k : nat) (f : nat -> option X) (r : nat -> X) : nat -> X :=
  fun x => if x <? k then r x else match f (x - k) with Some v => v | None => r x end.
Definition pstep m (cnt : nat -> nat -> nat) (G : ctx) (rho : nat -> nat -> tensor) (s : step) : nat -> nat -> tensor :=
  match s with
  | Ask gs =>
      let st := mergeM G gs (map (fun c => msgs G (cnt c) (fun x => rho x c) gs) (seq 0 m)) in
      set (length G) (fun q => match nth_error gs q with
                               | Some g => Some (fun _ => dec G g (nth q st [])) | None => None end) rho
  | Let h => set (length G) (fun q => match q with 0 => Some (fun c => leval G (cnt c) (fun x => rho x c) h) | _ => None end) rho
  end.
Fixpoint prun m cnt G rho (p : list step) :=
  match p with [] => rho | s :: p => prun m cnt (G ++ step_types G s) (pstep m cnt G rho s) p end.

(* The same steps, by ordinary evaluation. *)
Notation oenv := (nat -> option (shape * tensor)).
Definition ostep (G : ctx) (r : oenv) (s : step) : oenv :=
  match s with
  | Ask gs => set (length G) (fun q => match nth_error gs q with Some g => Some (oeval I r g) | None => None end) r
  | Let h => set (length G) (fun q => match q with 0 => Some (oeval I r h) | _ => None end) r
  end.
Fixpoint orun (G : ctx) (r : oenv) (p : list step) : oenv :=
  match p with [] => r | s :: p => orun (G ++ step_types G s) (ostep G r s) p end.

Lemma set_old {X} k (f : nat -> option X) r x : x < k -> set k f r x = r x.
Proof. intros H. unfold set. apply Nat.ltb_lt in H. now rewrite H. Qed.
Lemma set_new {X} k (f : nat -> option X) r q v : f q = Some v -> set k f r (k + q) = v.
Proof.
  intros H. unfold set. replace (k + q <? k) with false. 2:{ symmetry. apply Nat.ltb_ge. lia. }
  now replace (k + q - k) with q by lia; rewrite H.
Qed.

Theorem step_correct m cnt G r rho s : step_ok G s -> env_ok m cnt G r rho ->
  env_ok m cnt (G ++ step_types G s) (ostep G r s) (pstep m cnt G rho s).
Proof.
  intros Ok E x T N.
  assert (old : x < length G -> exists t, r x = Some (ext (tot m cnt) T, t) /\ vglob m cnt T (rho x) t).
  { intros X. rewrite nth_error_app1 in N by auto. now apply E. }
  destruct (Nat.lt_ge_cases x (length G)) as [X|X].
  - destruct s; cbn [ostep pstep]; rewrite !set_old by auto; auto.
  - rewrite nth_error_app2 in N by auto. replace x with (length G + (x - length G)) by lia.
    set (q := x - length G) in *. destruct s as [gs|h]; cbn [ostep pstep step_types step_ok] in *.
    + rewrite nth_error_map in N. destruct (nth_error gs q) as [g|] eqn:Ng; inversion N; subst.
      erewrite !set_new by (rewrite Ng; reflexivity).
      pose proof Ok as Og. rewrite Forall_forall in Og. specialize (Og g (nth_error_In _ _ Ng)).
      destruct (component_inv _ _ Og) as (T & H & Sh & _).
      assert (Et : tyd G g = T) by (unfold Sem.tyd; now rewrite (typeof_complete _ _ _ _ H)). rewrite Et.
      destruct (virtual_global_consistency I L m cnt G r rho E g T H) as (t & -> & V). exists t. split; auto.
      intros c i C Vi. rewrite (V c i C Vi). symmetry. apply (component_factorizes m cnt); auto.
      now rewrite <- (shp_ext G g T (cnt c) H Sh).
    + destruct q; [|destruct q; discriminate]. inversion N; subst. erewrite !set_new by reflexivity.
      destruct Ok as (T & H & Lo & Sh).
      assert (Et : tyd G h = T) by (unfold Sem.tyd; now rewrite (typeof_complete _ _ _ _ H)). rewrite Et.
      destruct (virtual_global_consistency I L m cnt G r rho E h T H) as (t & -> & V). exists t. split; auto.
      intros c i C Vi. rewrite (V c i C Vi). now apply client_locality with T.
Qed.

(* thm:iterative-shared-state-factorization and prop:round-wise-shared-memory: however many rounds. *)
Theorem run_correct m cnt p : forall G r rho, steps_ok G p -> env_ok m cnt G r rho ->
  env_ok m cnt (steps_ctx G p) (orun G r p) (prun m cnt G rho p).
Proof.
  induction p; simpl; intros G r rho Ok E; auto. destruct Ok. apply IHp; auto. now apply step_correct.
Qed.

(* --- every well-typed expression is such a program *)
Fixpoint compile (G : ctx) (e : expr) : list step * expr :=
  let out (p : list step) (e' : expr) :=
    let G' := steps_ctx G p in if exposes G' e' then (p ++ [Ask [e']], Var (length G')) else (p, e') in
  match e with
  | Var x => ([], Var x)
  | Un u e => let (p, e') := compile G e in (p, Un u e')
  | Bin b e f => let (p, e') := compile G e in let (q, f') := compile (steps_ctx G p) f in (p ++ q, Bin b e' f')
  | Agg a j e => let (p, e') := compile G e in out p (Agg a j e')
  | Perm l e => let (p, e') := compile G e in (p, Perm l e')
  | MM e f => let (p, e') := compile G e in let (q, f') := compile (steps_ctx G p) f in out (p ++ q) (MM e' f')
  end.

Lemma steps_ctx_app G p q : steps_ctx G (p ++ q) = steps_ctx (steps_ctx G p) q.
Proof. revert G. induction p; simpl; auto. Qed.
Lemma steps_ctx_ext p : forall G, exists D, steps_ctx G p = G ++ D.
Proof.
  induction p; simpl; intros G. { exists []. now rewrite app_nil_r. }
  destruct (IHp (G ++ step_types G a)) as [D ->]. rewrite <- app_assoc. eauto.
Qed.
Lemma steps_ok_app G p q : steps_ok G (p ++ q) <-> steps_ok G p /\ steps_ok (steps_ctx G p) q.
Proof. revert G. induction p; simpl; intros; [tauto|]. rewrite IHp. tauto. Qed.
Lemma orun_app p : forall G r q, orun G r (p ++ q) = orun (steps_ctx G p) (orun G r p) q.
Proof. induction p; simpl; auto. Qed.
Lemma orun_old p : forall G r x, x < length G -> orun G r p x = r x.
Proof.
  induction p; simpl; intros G r x X; auto. rewrite IHp by (rewrite app_length; lia).
  destruct a; simpl; now rewrite set_old.
Qed.
Lemma oeval_vars r r' (e : expr) : (forall x, In x (vars e) -> r x = r' x) -> oeval I r e = oeval I r' e.
Proof.
  induction e; cbn [oeval vars]; intros H; auto.
  - apply H; simpl; auto. - now rewrite IHe.
  - rewrite IHe1, IHe2; auto; intros; apply H; apply in_or_app; auto.
  - now rewrite IHe. - now rewrite IHe.
  - rewrite IHe1, IHe2; auto; intros; apply H; apply in_or_app; auto.
Qed.
Lemma vars_lt G (e : expr) T : has_type G e T -> forall x, In x (vars e) -> x < length G.
Proof.
  induction 1; cbn [vars]; intros y Y; auto; try (apply in_app_or in Y; destruct Y; auto).
  destruct Y as [<-|[]]. apply nth_error_Some. congruence.
Qed.
Lemma oeval_old G r p (e : expr) T : has_type G e T -> oeval I (orun G r p) e = oeval I r e.
Proof. intros H. apply oeval_vars. intros x X. apply orun_old. eapply vars_lt; eauto. Qed.

Lemma weaken_steps G p (e : expr) T : has_type G e T -> has_type (steps_ctx G p) e T.
Proof.
  intros H. destruct (steps_ctx_ext p G) as [D ->]. apply typeof_sound, typeof_weaken, typeof_complete; auto.
Qed.
Lemma local_steps G p (e : expr) T : has_type G e T -> localb G e = true -> localb (steps_ctx G p) e = true.
Proof.
  intros H Lo. destruct (steps_ctx_ext p G) as [D ->]. rewrite (localb_weaken _ _ _ _ T); auto. now apply typeof_complete.
Qed.

Theorem compile_correct e : forall G T p e', has_type G e T -> compile G e = (p, e') ->
  steps_ok G p /\ has_type (steps_ctx G p) e' T /\ localb (steps_ctx G p) e' = true /\
  forall r, oeval I (orun G r p) e' = oeval I r e.
Proof.
  assert (out_ok : forall G p e0 T, steps_ok G p -> has_type (steps_ctx G p) e0 T ->
    forallb (localb (steps_ctx G p)) (args e0) = true -> (exposes (steps_ctx G p) e0 = false -> localb (steps_ctx G p) e0 = true) ->
    forall q e', (if exposes (steps_ctx G p) e0 then (p ++ [Ask [e0]], Var (length (steps_ctx G p))) else (p, e0)) = (q, e') ->
    steps_ok G q /\ has_type (steps_ctx G q) e' T /\ localb (steps_ctx G q) e' = true /\
    forall r, oeval I (orun G r q) e' = oeval I (orun G r p) e0).
  { intros G p e0 T Ok H Lo Lo' q e' E. destruct (exposes (steps_ctx G p) e0) eqn:X; inversion E; subst; clear E; auto.
    rewrite steps_ctx_app, steps_ok_app. simpl. split; [|split; [|split]]; auto.
    - split; auto. split; auto. constructor; auto. split; eauto.
    - constructor. rewrite nth_error_app2, Nat.sub_diag by auto. unfold Sem.tyd. simpl.
      now rewrite (typeof_complete _ _ _ _ H).
    - intros r. rewrite orun_app. simpl. unfold set. now rewrite Nat.ltb_irrefl, Nat.sub_diag. }
  induction e; intros G T p e' H C; cbn [compile] in C.
  - inversion C; subst. simpl. auto.
  - destruct (compile G e) as [p0 e0] eqn:Ce. inversion C; subst. inversion H; subst.
    match goal with X : has_type G e _ |- _ => destruct (IHe _ _ _ _ X Ce) as (Ok & Ht & Lo & Ev) end. split; [|split; [|split]]; auto. { now constructor. }
    intros r. cbn [oeval]. now rewrite Ev.
  - destruct (compile G e1) as [p1 e1'] eqn:C1. destruct (compile (steps_ctx G p1) e2) as [p2 e2'] eqn:C2.
    inversion C; subst. inversion H as [| | ? ? ? T1 T2 ? H1 H2 J | | | | |]; subst.
    destruct (IHe1 _ _ _ _ H1 C1) as (Ok1 & Ht1 & Lo1 & Ev1).
    destruct (IHe2 _ _ _ _ (weaken_steps _ p1 _ _ H2) C2) as (Ok2 & Ht2 & Lo2 & Ev2).
    rewrite steps_ctx_app, steps_ok_app. split; [|split; [|split]]; auto.
    + econstructor; eauto. now apply weaken_steps.
    + cbn [localb]. rewrite (local_steps _ p2 _ _ Ht1 Lo1), Lo2. reflexivity.
    + intros r. rewrite orun_app. cbn [oeval].
      rewrite (oeval_old _ _ _ _ _ Ht1), Ev1, Ev2, (oeval_old _ _ _ _ _ H2). reflexivity.
  - destruct (compile G e) as [p0 e0] eqn:Ce. inversion H; subst.
    + match goal with X : has_type G e _ |- _ => destruct (IHe _ _ _ _ X Ce) as (Ok & Ht & Lo & Ev) end.
      assert (Ht' : has_type (steps_ctx G p0) (Agg a j e0) (del j T0)) by (eapply TAgg; eauto).
      edestruct (out_ok G p0 (Agg a j e0)) as (A1 & A2 & A3 & A4); eauto.
      { simpl. now rewrite Lo. } { intros X. cbn [localb]. rewrite X, Lo. reflexivity. }
      split; [|split; [|split]]; auto. intros r. rewrite A4. cbn [oeval]. now rewrite Ev.
    + match goal with X : has_type G e _ |- _ => destruct (IHe _ _ _ _ X Ce) as (Ok & Ht & Lo & Ev) end.
      assert (Ht' : has_type (steps_ctx G p0) (Agg a j e0) (del j T0)) by (eapply TExpose; eauto).
      edestruct (out_ok G p0 (Agg a j e0)) as (A1 & A2 & A3 & A4); eauto.
      { simpl. now rewrite Lo. } { intros X. cbn [localb]. rewrite X, Lo. reflexivity. }
      split; [|split; [|split]]; auto. intros r. rewrite A4. cbn [oeval]. now rewrite Ev.
  - destruct (compile G e) as [p0 e0] eqn:Ce. inversion C; subst. inversion H; subst.
    match goal with X : has_type G e _ |- _ => destruct (IHe _ _ _ _ X Ce) as (Ok & Ht & Lo & Ev) end. split; [|split; [|split]]; auto. { now constructor. }
    intros r. cbn [oeval]. now rewrite Ev.
  - destruct (compile G e1) as [p1 e1'] eqn:C1. destruct (compile (steps_ctx G p1) e2) as [p2 e2'] eqn:C2.
    assert (X : exists T1 T2, has_type G e1 T1 /\ has_type G e2 T2 /\
              forall G' (f1 f2 : expr), has_type G' f1 T1 -> has_type G' f2 T2 -> has_type G' (MM f1 f2) T).
    { inversion H; subst; do 2 eexists; split; eauto; split; eauto; intros; [eapply TMM | eapply TContract]; eauto. }
    destruct X as (T1 & T2 & H1 & H2 & Hm).
    destruct (IHe1 _ _ _ _ H1 C1) as (Ok1 & Ht1 & Lo1 & Ev1).
    destruct (IHe2 _ _ _ _ (weaken_steps _ p1 _ _ H2) C2) as (Ok2 & Ht2 & Lo2 & Ev2).
    pose proof (local_steps _ p2 _ _ Ht1 Lo1) as Lo1'.
    edestruct (out_ok G (p1 ++ p2) (MM e1' e2') T) as (A1 & A2 & A3 & A4); eauto.
    { now apply steps_ok_app. }
    { rewrite steps_ctx_app. apply Hm; auto. now apply weaken_steps. }
    { rewrite steps_ctx_app. cbn [args forallb]. now rewrite Lo1', Lo2. }
    { rewrite steps_ctx_app. intros X. cbn [localb]. now rewrite X, Lo1', Lo2. }
    split; [|split; [|split]]; auto. intros r. rewrite A4, orun_app. cbn [oeval].
    rewrite (oeval_old _ _ _ _ _ Ht1), Ev1, Ev2, (oeval_old _ _ _ _ _ H2). reflexivity.
Qed.

(* THE HEADLINE.  For every well-typed program with a shared result, every federation and all data: the
   rounds are well formed (so each client sends messages whose size depends on types alone, computed from its own
   records and shared values), what remains at the end is shared-only, and every client ends with exactly
   what ordinary evaluation gives on the concatenation of all records. *)
Theorem federated_execution_is_exact G (e h : expr) T p : has_type G e T -> shared T = true -> compile G e = (p, h) ->
  steps_ok G p /\ (forall x, In x (vars h) -> exists T', nth_error (steps_ctx G p) x = Some T' /\ shared T' = true) /\
  forall m cnt r rho, env_ok m cnt G r rho ->
  exists t, oeval I r e = Some (shp G e, t) /\
  forall c i, c < m -> valid (shp G e) i ->
    leval (steps_ctx G p) (cnt c) (fun x => prun m cnt G rho p x c) h i = t i.
Proof.
  intros H Sh C. destruct (compile_correct e G T p h H C) as (Ok & Ht & Lo & Ev). split; auto. split.
  { now apply (shared_local_is_shared_only (mg I) _ h T). }
  intros m cnt r rho E.
  destruct (virtual_global_consistency I L m cnt _ _ _ (run_correct m cnt p G r rho Ok E) h T Ht) as (t & O & V).
  rewrite Ev in O. rewrite (shp_ext G e T _ H Sh) in O. exists t. split; auto. intros c i Cm Vi.
  rewrite <- (client_locality m cnt _ _ h T Ht Lo). rewrite <- (shp_ext G e T (cnt c) H Sh) in Vi.
  rewrite <- (V c i Cm Vi). f_equal. apply gidx_shared; auto. apply valid_length in Vi. now rewrite ext_length in Vi.
Qed.

(* --- thm:one-round-shared-state-factorization and thm:one-round-realization, as one equivalence *)
Definition one_round G (gs : list expr) (h : expr) (t : ty) : Prop :=
  Forall (component G) gs /\ has_type (map (tyd G) gs) h t /\ shared t = true.

End Rounds.
