"""What cannot be saved as C is refused, with what to do instead."""

import numpy as np
import pytest
from exported import doubled

import primgraph as pg
from primgraph.codegen.targets.export.file import function_of
from primgraph.codegen.targets.export.identifiers import Names

# What cannot be saved.


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("int", "a function is called 'int', which is a word of C"),
        ("class", "a word of C\\+\\+, which the header is for, too"),
        ("exp", "a name that C has for something else"),
        ("main", "a name that C has for something else"),
        ("_own", "a name that C has for something else"),
        ("a" * 35, "longer than the 31 characters"),
    ],
)
def test_names_that_mean_something_are_refused(name, message, tmp_path):
    with pytest.raises(pg.CompileError, match=message) as caught:
        pg.compile(doubled(name)).save(tmp_path / "model.c")
    assert "letters, digits and underscores" in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_inputs_have_names_of_c(tmp_path):
    for name in ("double", "restrict", "this", "my input", "sin"):
        with pg.Program() as program:
            x = pg.data(name, (3,))
            y = x * 2
        graph = program.graph([y])
        with pytest.raises(pg.CompileError, match=f"an input of .* is called '{name}'"):
            pg.compile(graph).save(tmp_path / "model.c")


@pytest.mark.parametrize(
    "name",
    ["M_PI", "M_E", "unix", "linux", "typeof", "I", "EOF", "LONG_MAX", "DBL_EPSILON", "SIZE_MAX"],
)
def test_names_of_headers_and_compilers_are_refused(name):
    with pg.Program() as program:
        y = pg.data(name, (3,)) * 2
    with pytest.raises(pg.CompileError, match=f"is called '{name}', which is a name that C has"):
        function_of(program.graph([y]))


def test_names_like_those_of_headers_are_taken():
    for name in ("SIGMA", "EPS", "M_X", "LONG", "x_t"):
        with pg.Program() as program:
            y = pg.data(name, (3,)) * 2
        assert function_of(program.graph([y])).parameters[0].name == name


def test_keys_that_are_no_names_of_c_are_told_of():
    told = function_of(pg.trace(lambda s: {"P+": s, "s": s * 2, "1": s * 3}, pg.spec(2)))
    assert [p.name for p in told.parameters] == ["s", "P", "s_out", "result_1"]
    assert "P is the result at 'P+'." in told.remark
    assert "result_1 is the result at '1'." in told.remark
    assert not any("s_out is" in line for line in told.remark)


def test_names_that_last_are_not_those_within_blocks():
    names = Names()
    names.open()
    assert names.fresh("z") == "z"
    names.close()
    assert names.fresh("z") == "z"
    assert names.fresh("z", lasting=True) == "z_2"
    later = Names(["z_2"], names.used)
    assert later.fresh("z", shared=True) == "z_3"
    assert later.fresh("z") == "z"


def test_inputs_in_containers_have_the_names_of_their_paths():
    def layered(params, _bias):
        for weight, shift in params["layers"]:
            _bias = pg.tanh(weight @ _bias + shift)
        return {"out": _bias, "parts": (_bias[0], [{"deep": _bias[1]}])}

    layers = {"layers": [(np.ones((3, 4)), np.zeros(3)), (np.ones((2, 3)), np.zeros(2))]}
    told = function_of(pg.trace(layered, layers, np.ones(4)))
    names = [p.name for p in told.parameters]
    assert names[:2] == ["params_layers_0_0", "params_layers_0_1"]
    assert names[4:] == ["_bias", "out", "parts_0", "parts_1_0_deep"]


def test_names_of_results_and_lambdas_are_made_fitting():
    def named_double(x):
        double = x * 2
        return {"double": double, "a key": double + 1, "x": x}

    told = function_of(pg.trace(named_double, pg.spec(2)))
    assert [p.name for p in told.parameters] == ["x", "double_", "a_key", "x_out"]
    assert function_of(doubled("<lambda>")).name == "kernel"


def test_what_has_no_words_is_told_with_its_line(tmp_path):
    def transformed(x):
        return pg.abs(pg.linalg.logm(x))

    with pytest.raises(pg.CompileError, match="logm") as caught:
        pg.compile(pg.trace(transformed, pg.spec((2, 2)))).save(tmp_path / "model.c")
    text = str(caught.value)
    assert "return pg.abs(pg.linalg.logm(x))" in text
    assert "transformed cannot be saved as C" in text
    assert "compute it outside" in text

    def inside(rows):
        return pg.scan(lambda c, r: (pg.linalg.logm(c) + r, None), rows[0], rows)[0]

    with pytest.raises(pg.CompileError, match="logm"):
        pg.compile(pg.trace(inside, pg.spec((3, 2, 2)))).save(tmp_path / "model.c")


def test_a_stack_without_a_bound_is_refused(tmp_path):
    def slope(x):
        last = pg.while_loop(lambda c: pg.sum(c) < 50.0, lambda c: pg.exp(c * 0.1), x)
        return pg.grad(pg.sum(last), x)

    with pytest.raises(pg.CompileError, match="without a bound on its trips") as caught:
        pg.compile(pg.trace(slope, pg.spec(3))).save(tmp_path / "model.c")
    assert "give the loop max_trips" in str(caught.value)
    assert "last = pg.while_loop" in str(caught.value)


def test_complex_numbers_are_refused(tmp_path):
    z = pg.compile(pg.trace(lambda z: z * 2, np.zeros(2, "c16")))
    with pytest.raises(pg.CompileError, match="no such numbers"):
        z.save(tmp_path / "model.c")

    def carried(x):
        return pg.real(pg.scan(lambda c, r: (c * r, None), pg.complex(x, x), x)[0])

    with pytest.raises(pg.CompileError, match=r"C has no .* of complex128.*so carried cannot"):
        pg.compile(pg.trace(carried, pg.spec(3))).save(tmp_path / "model.c")


@pytest.mark.parametrize("name", ["svd", "svdvals", "pinv", "eigvalsh", "logm"])
def test_linear_algebra_of_complex_numbers_is_named(name, tmp_path):
    def function(x):
        z = pg.complex(x, x) + np.eye(2)
        return pg.real(getattr(pg.linalg, name)(z)[0])

    with pytest.raises(pg.CompileError, match=f"C has no {name} of complex128"):
        pg.compile(pg.trace(function, np.ones((2, 2)))).save(tmp_path / "model.c")


def test_sizes_have_names_of_c(tmp_path):
    for name, why in (("int", "a word of C"), ("sin", "a name that C has for something else")):
        graph = pg.trace(lambda x: x * 2, pg.spec((name, 3)))
        with pytest.raises(
            pg.CompileError, match=f"a size of .* is called '{name}', which is {why}"
        ):
            pg.compile(graph).save(tmp_path / "model.c")
    assert not list(tmp_path.iterdir())


def test_paths(tmp_path):
    kernel = pg.compile(doubled("doubled"))
    for ending in (".h", ".cpp", ".cc", ".C"):
        with pytest.raises(pg.ArgumentError, match=r"C is saved to a path that ends in \.c"):
            kernel.save(tmp_path / f"model{ending}")
    with pytest.raises(pg.ArgumentError, match="imports nothing"):
        kernel.save(tmp_path / "model.c", scipy=True)
    with pytest.raises(pg.CompileError, match="one function of a name"):
        kernel.save(tmp_path / "model.c", kernel)
    shouted, other = (pg.compile(doubled(n)) for n in ("Doubled", "doubled_workspace"))
    for another in (shouted, other):
        with pytest.raises(pg.CompileError, match="one function of a name"):
            kernel.save(tmp_path / "model.c", another)
    for stem in ("math", 'a"b', "grün"):
        with pytest.raises(pg.ArgumentError, match="could not be included under that name"):
            kernel.save(tmp_path / f"{stem}.c")
    assert not list(tmp_path.iterdir())
    (tmp_path / "model.h").write_text("/* mine */\n")
    with pytest.raises(pg.ArgumentError, match="is there already"):
        kernel.save(tmp_path / "model.c")
    assert not (tmp_path / "model.c").exists()
    kernel.save(tmp_path / "model.c", force=True)
    # What primgraph wrote itself may be written over.
    kernel.save(tmp_path / "model.c")
    first = (tmp_path / "model.c").read_bytes()
    kernel.save(tmp_path / "model.c")
    assert (tmp_path / "model.c").read_bytes() == first
