"""`starfold fmt`: one canonical layout."""
import os
import stat

LOOSE = "input   x:[*,p]   # data\nlet a=sum[ * ]( x )\noutput a\n"
TIGHT = "input x : [*, p]  # data\nlet a = sum[*](x)\noutput a\n"


def test_rewrites_the_file(starfold, program):
    path = program(LOOSE)
    path.chmod(0o640)
    result = starfold("fmt", path)
    assert (result.code, result.out, result.err) == (0, "", "")
    assert path.read_text() == TIGHT
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert os.listdir(path.parent) == ["program.fold"]


def test_leaves_a_file_that_is_right(starfold, program):
    path = program(TIGHT)
    os.utime(path, (1, 1))
    assert starfold("fmt", path).code == 0
    assert path.stat().st_mtime == 1


def test_check_changes_nothing(starfold, program):
    path = program(LOOSE)
    result = starfold("fmt", "--check", path)
    assert result.code == 1
    assert "program.fold" in result.err
    assert path.read_text() == LOOSE
    assert starfold("fmt", "--check", program(TIGHT)).code == 0


def test_syntax_errors_leave_the_file(starfold, program):
    path = program("let a = (1\noutput a\n")
    for arguments in (["fmt"], ["fmt", "--check"]):
        result = starfold(*arguments, path)
        assert result.code == 1
        assert "E0107" in result.err
        assert path.read_text() == "let a = (1\noutput a\n"


def test_type_errors_do_not_matter(starfold, program):
    path = program("output   a=undefined\n")
    assert starfold("fmt", path).code == 0
    assert path.read_text() == "output a = undefined\n"


def test_standard_input(starfold):
    result = starfold("fmt", "-", input=LOOSE)
    assert (result.code, result.out) == (0, TIGHT)
    assert starfold("fmt", "--check", "-", input=LOOSE).code == 1
    assert starfold("fmt", "-", input="let = 1\n").code == 1


def test_several_files(starfold, program):
    one, two = program(LOOSE, "one.fold"), program("let = 1\n", "two.fold")
    assert starfold("fmt", two, one).code == 1
    assert one.read_text() == TIGHT


def test_a_link_stays_a_link(starfold, program, tmp_path):
    path = program(LOOSE)
    link = tmp_path / "link.fold"
    link.symlink_to(path)
    assert starfold("fmt", link).code == 0
    assert link.is_symlink()
    assert path.read_text() == TIGHT
