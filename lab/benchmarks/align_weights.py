"""Turns the GGUF weights of a Qwen2 model into a folder that transformers loads: every tensor dequantised to bfloat16.

python lab/benchmarks/align_weights.py tokenizer WEIGHTS.gguf FOLDER      # slow: tokenizer and config, by transformers
python lab/benchmarks/align_weights.py pack WEIGHTS.gguf FOLDER           # the tensors alone, still quantised
python lab/benchmarks/align_weights.py tensors FOLDER/tensors.bin FOLDER  # fast: dequantised, on all cores
python lab/benchmarks/align_weights.py check WEIGHTS.gguf FOLDER          # the folder against transformers' own reading
"""

import json
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy
import torch
from gguf import GGMLQuantizationType, GGUFReader
from gguf.quants import dequantize
from safetensors.torch import load_file, save_file

PARTS = {
    "attn_q": "self_attn.q_proj",
    "attn_k": "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
    "attn_norm": "input_layernorm",
    "ffn_norm": "post_attention_layernorm",
}
PIECE = 8192
"""Rows dequantised at once."""


def name_of(name: str) -> str | None:
    """What transformers calls a tensor.

    The model has one matrix for its input and its output, and the file has two copies of it: we take the output's
    (Q8_0), which is the more exact one, and leave out the input's (Q5_0).
    """
    words = name.split(".")
    if words[0] == "blk":
        return f"model.layers.{words[1]}.{PARTS[words[2]]}.{words[3]}"
    return {"output.weight": "model.embed_tokens.weight", "output_norm.weight": "model.norm.weight"}.get(name)


def read(job: tuple[str, int, int, list[int], int]) -> torch.Tensor:
    """Some rows of one tensor, in bfloat16."""
    weights, offset, size, shape, kind = job
    raw = numpy.fromfile(weights, dtype=numpy.uint8, count=size, offset=offset).reshape(
        shape[0] if shape[1:] else 1, -1
    )
    values = dequantize(raw, GGMLQuantizationType(kind)) if kind > 1 else raw.view((numpy.float32, numpy.float16)[kind])
    return torch.from_numpy(numpy.ascontiguousarray(values)).to(torch.bfloat16).reshape(shape)


def tensors(weights: Path, folder: Path) -> None:
    """Write `model.safetensors`."""
    jobs: list[tuple[str, int, int, list[int], int]] = []
    names: list[str] = []
    for name, offset, size, shape, kind in json.loads((folder / "tensors.json").read_text()):
        pieces = range(0, shape[0], PIECE) if shape[1:] else [0]
        row = size // shape[0] if shape[1:] else size
        for start in pieces:
            rows = min(PIECE, shape[0] - start) if shape[1:] else 1
            jobs.append(
                (str(weights), offset + start * row, rows * row, [rows, *shape[1:]] if shape[1:] else shape, kind)
            )
            names.append(name)
    found: dict[str, list[torch.Tensor]] = {}
    with ThreadPoolExecutor() as pool:
        for name, rows in zip(names, pool.map(read, jobs), strict=True):
            found.setdefault(name, []).append(rows)
    save_file({name: torch.cat(rows) for name, rows in found.items()}, folder / "model.safetensors", {"format": "pt"})


def pack(weights: Path, folder: Path) -> None:
    """Write `tensors.bin`, the tensors as they lie in the GGUF, and `tensors.json`, which says where each one is."""
    listed: list[tuple[str, int, int, list[int], int]] = []
    with weights.open("rb") as source, (folder / "tensors.bin").open("wb") as target:
        for one in GGUFReader(str(weights)).tensors:
            if name := name_of(one.name):
                shape = [int(size) for size in reversed(one.shape)]
                listed.append((name, target.tell(), int(one.n_bytes), shape, int(one.tensor_type)))
                source.seek(one.data_offset)
                target.write(source.read(one.n_bytes))
    (folder / "tensors.json").write_text(json.dumps(listed))


def tokenizer(weights: Path, folder: Path) -> None:
    """Write the tokenizer and the config."""
    from transformers import AutoConfig, AutoTokenizer

    AutoTokenizer.from_pretrained(weights.parent, gguf_file=weights.name).save_pretrained(folder)
    config = AutoConfig.from_pretrained(weights.parent, gguf_file=weights.name)
    config.tie_word_embeddings = True
    config.dtype = torch.bfloat16
    config.architectures = ["Qwen2ForCausalLM"]
    config.save_pretrained(folder)


def check(weights: Path, folder: Path) -> None:
    """Compare every tensor of the folder with what transformers reads from the GGUF."""
    from transformers import AutoModelForCausalLM, GgufConfig

    model = AutoModelForCausalLM.from_pretrained(
        weights.parent, gguf_file=weights.name, quantization_config=GgufConfig(dequantize=True), dtype=torch.bfloat16
    )
    ours, theirs = load_file(folder / "model.safetensors"), model.state_dict()
    theirs["model.embed_tokens.weight"] = theirs["lm_head.weight"]
    worst = max(float((theirs[name].float() - tensor.float()).abs().max()) for name, tensor in ours.items())
    print(f"{len(ours)} tensors; largest difference {worst}; not in the folder: {sorted(theirs.keys() - ours.keys())}")


if __name__ == "__main__":
    target = Path(sys.argv[3])
    target.mkdir(parents=True, exist_ok=True)
    {"tokenizer": tokenizer, "pack": pack, "tensors": tensors, "check": check}[sys.argv[1]](Path(sys.argv[2]), target)
