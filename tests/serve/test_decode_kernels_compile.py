"""The kernels of fused layers, compiled for an H100's kind without a device: Triton's interpreter takes code
that its compiler refuses."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from harness.serve.decode.model.shapes import SHAPES

triton = pytest.importorskip("triton")
NUMBERS = {"eps": "fp32", "scaling": "fp32"} | dict.fromkeys(
    ("outputs", "tokens", "depth", "width", "capacity", "turns", "inner"), "i32"
)
INDICES = ("rows", "at")


def compiled(kernel: Any, constants: dict[str, Any], warps: int, *, early: bool = False) -> Any:
    """Returns the kernel for bfloat16, with pointers that are multiples of 16, as torch's are, and a `depth`
    that is one too."""
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    signature, aligned = {}, {}
    for place, name in enumerate(kernel.arg_names):
        if name in constants:
            signature[name] = "constexpr"
        elif name in NUMBERS:
            signature[name] = NUMBERS[name]
        else:
            signature[name] = "*i64" if name in INDICES else "*bf16"
        if name == "depth" or (name not in constants and name not in NUMBERS):
            aligned[(place,)] = [["tt.divisibility", 16]]
    source = ASTSource(
        fn=kernel,
        signature=signature,
        constexprs={(kernel.arg_names.index(name),): value for name, value in constants.items()},
        attrs=aligned,
    )
    return triton.compile(
        source, target=GPUTarget("cuda", 90, 32), options={"num_warps": warps, "launch_pdl": early}
    )


def products() -> Iterator[Any]:
    """Yields the products of a layer: its shape, and the constants but for the blocks."""
    for name in ("1b", "8b"):
        shape = SHAPES[name]
        plain = {"normed": False, "gated": False, "biased": False, "added": True}
        for width, how in (
            (shape.hidden_size, plain | {"normed": True, "added": False}),
            (shape.hidden_size, plain | {"normed": True, "gated": True, "added": False}),
            (shape.hidden_size, plain),
            (shape.intermediate_size, plain),
        ):
            yield pytest.param(width, how, id=f"{name} {width} {'gated' if how['gated'] else how['normed']}")


def begins_early(code: str) -> bool:
    """Returns whether the kernel lets the next one begin, reads before it waits, and writes behind that."""
    before, _, behind = code.partition("griddepcontrol.wait")
    once = code.count("griddepcontrol.wait") == code.count("griddepcontrol.launch_dependents") == 1
    return once and "ld.global" in before and "st.global" in behind and "st.global" not in before


@pytest.mark.parametrize(("width", "how"), list(products()))
def test_a_product_of_one_token_begins_early_and_keeps_its_sums_in_registers(
    width: int, how: dict[str, Any]
) -> None:
    from harness.serve.decode.model import sums

    outputs, inputs, warps = sums.blocks(width, how["gated"])
    constants = how | {"width": width, "early": True, "block_outputs": outputs, "block_width": inputs}
    code = compiled(sums.product, constants, warps, early=True).asm["ptx"]
    assert begins_early(code)
    assert ".local" not in code, "what does not fit into registers is as slow as memory"


@pytest.mark.parametrize("many", [False, True])
@pytest.mark.parametrize(("width", "how"), list(products()))
def test_the_units_take_what_each_thread_has_read(width: int, how: dict[str, Any], many: bool) -> None:
    """Until the last product nothing goes through shared memory, and no thread waits for another; and the
    loop stays one: the products of two rounds stand there, whatever the width."""
    from harness.serve.decode.model import units

    splits, ahead = units.blocks(width, how["gated"], many)
    constants = how | {"width": width, "many": many, "early": True, "splits": splits, "ahead": ahead}
    code = compiled(units.product, constants, splits, early=True).asm["ptx"]
    assert begins_early(code)
    assert ".local" not in code, "what does not fit into registers is as slow as memory"
    *body, _ = code.split("mma.sync")
    of_block = 1 + how["gated"] + how["normed"] * (1 + many)
    assert len(body) == 2 * ahead * 2 * of_block, (len(body), ahead, of_block)
    assert not [word for word in ("bar.", "ld.shared", "st.shared") if word in "".join(body)]


@pytest.mark.parametrize("count", [1, 2, 16])
@pytest.mark.parametrize("dim", [64, 128])
def test_attention_of_few_tokens_compiles(dim: int, count: int) -> None:
    from harness.serve.decode.model import few

    constants = {"count": count, "heads": 32, "shared": 8, "dim": dim, "early": True, "block_count": count}
    blocks = {"block_half": dim // 2, "block_dim": dim, "block_span": 128 if dim <= 64 else 64}
    code = compiled(few._attended, constants | blocks, 4, early=True).asm["ptx"]
    assert ".local" not in code
    assert "griddepcontrol.wait" in code and "st.global" not in code.partition("griddepcontrol.wait")[0]


@pytest.mark.parametrize("count", [1, 4, 32])
@pytest.mark.parametrize("dim", [64, 128])
def test_attention_of_many_tokens_compiles(dim: int, count: int) -> None:
    from harness.serve.decode.model import kernels

    constants = {"width": 32 * dim, "count": count, "heads": 32, "shared": 8, "dim": dim, "biased": dim == 64}
    blocks = {"block_width": 2048, "block_half": dim // 2, "block_dim": dim, "block_span": 64}
    blocks |= {"block_count": max(16, count), "block_queries": max(16, 4 * count)}
    assert compiled(kernels._attended, constants | blocks, 4).asm["cubin"]


def test_gate_and_norm_compile() -> None:
    from harness.serve.decode.model import kernels

    assert compiled(kernels._gated, {"width": 4096, "block_width": 2048, "block": 2048}, 4).asm["cubin"]
    assert compiled(kernels._normed, {"block": 4096}, 8).asm["cubin"]
