(* The laws can be met: integers, with sum, prod, min, max and count.  A commutative semigroup becomes a monoid of
   states by adding a neutral state: that is what max and min need (see Gaps.v), and Starfold has -inf, inf for it. *)
From Coq Require Import List ZArith Lia Bool.
Import ListNotations.
From Starfold Require Import Index Lang Sem Rounds.
Local Open Scope Z_scope.

Inductive U0 := Neg | Abs | Const (z : Z).
Inductive B0 := Add | Sub | Mul | Max | Min | Less.
Inductive A0 := ASum | AProd | AMax | AMin | ACount | AMedian.

Definition lift (f : Z -> Z -> Z) (x y : option Z) : option Z :=
  match x, y with None, y => y | x, None => x | Some a, Some b => Some (f a b) end.
Definition semi (a : A0) : Z -> Z -> Z :=
  match a with ASum | ACount => Z.add | AProd => Z.mul | AMax => Z.max | _ => Z.min end.
Definition term (a : A0) (z : Z) : Z := match a with ACount => 1 | _ => z end.
Definition empty (a : A0) : Z := match a with AProd => 1 | _ => 0 end.   (* alpha_0 *)
Definition zenc (a : A0) (l : list Z) : option Z := fold_right (fun z s => lift (semi a) (Some (term a z)) s) None l.
Definition zfin (a : A0) (s : option Z) : Z := match s with Some z => z | None => empty a end.

Definition Zmeaning : meaning Z (option Z) U0 B0 A0 := {|
  iU u z := match u with Neg => - z | Abs => Z.abs z | Const c => c end;
  iB b x y := match b with Add => x + y | Sub => x - y | Mul => x * y | Max => Z.max x y | Min => Z.min x y
                         | Less => if x <? y then 1 else 0 end;
  iA a l := zfin a (zenc a l);          (* the median is only typed here, not computed *)
  mul := Z.mul; asum := ASum;
  mg a := match a with AMedian => false | _ => true end;
  enc := zenc; fin := zfin; op a := lift (semi a); unit _ := None |}.

Lemma semi_assoc a x y z : semi a x (semi a y z) = semi a (semi a x y) z.
Proof. destruct a; simpl; lia. Qed.
Lemma semi_comm a x y : semi a x y = semi a y x.
Proof. destruct a; simpl; lia. Qed.
Lemma lift_assoc a x y z : lift (semi a) x (lift (semi a) y z) = lift (semi a) (lift (semi a) x y) z.
Proof. destruct x, y, z; simpl; auto. now rewrite semi_assoc. Qed.

Theorem Z_lawful : lawful Zmeaning.
Proof.
  constructor; simpl; auto.
  - intros. apply lift_assoc.
  - intros a [x|] [y|] _; simpl; auto. now rewrite semi_comm.
  - intros a [x|] _; auto.
  - intros a l m _. unfold zenc at 1. rewrite fold_right_app. fold (zenc a m). induction l; [easy|].
    cbn [fold_right]. rewrite IHl. cbn [zenc fold_right]. now rewrite lift_assoc.
Qed.

Definition Z_execution_is_exact := @federated_execution_is_exact _ _ _ _ _ Zmeaning Z_lawful.

(* What is extracted: the checker, the reference evaluator, the rounds and the protocol itself. *)
Definition zexpr := @expr U0 B0 A0.
Definition ztypeof : ctx -> zexpr -> option ty := typeof (mg Zmeaning).
Definition zoeval := oeval Zmeaning.
Definition zcompile : ctx -> zexpr -> list step * zexpr := compile Zmeaning.
Definition zlocal : ctx -> zexpr -> bool := localb (mg Zmeaning).
(* All values of the result, row by row: centrally, and by the protocol as client 0 sees it. *)
Definition zcentral (r : nat -> option (shape * tensor)) (e : zexpr) : option (shape * list Z) :=
  match zoeval r e with Some (s, t) => Some (s, map t (indices s)) | None => None end.
Definition zprotocol (m : nat) (cnt : nat -> nat -> nat) (G : ctx) (rho : nat -> nat -> tensor) (e : zexpr) : list Z :=
  let (p, h) := zcompile G e in
  map (leval Zmeaning (steps_ctx Zmeaning G p) (cnt 0%nat) (fun x => prun Zmeaning m cnt G rho p x 0%nat) h)
      (indices (shp Zmeaning G e)).
Definition zrounds (G : ctx) (e : zexpr) : list nat :=
  map (fun s => match s with Ask gs => length gs | Let _ => 0%nat end) (fst (zcompile G e)).
