"""What a person names as a model: a size, a name, a config.json, a folder, or a file of weights."""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from kmrun.core.llm_model import Model, Parameters, parameters
from kmrun.core.llm_quant import Quant, Weights, plain_format, weights
from kmrun.errors import InvalidInput, UnknownName, UsageError
from kmrun.source.model_catalogue import ModelCatalogue
from kmrun.source.paths import exists

if TYPE_CHECKING:
    from kmrun.source.weight_tensors import Inventory

_FACTORS = {"k": 1e3, "m": 1e6, "b": 1e9, "t": 1e12}
_LEAST, _MOST = 1e6, 1e15
_FILES = (".gguf", ".safetensors", ".json")
USUAL = "q4_k_m"
"""The format of a model whose own is not asked for: what most people run at home."""


class Subject(NamedTuple):
    """A model in a format, and what had to be assumed about it. `sized`: only its size is known."""

    model: Model
    quant: Quant
    weights: Weights
    assumptions: tuple[str, ...] = ()
    sized: bool = False


class Wish(NamedTuple):
    """What the options say about a model: its name, format, bytes a parameter, active parameters."""

    name: str
    quant: str | None = None
    bytes_per_param: float | None = None
    active: float | None = None


def read_subject(wish: Wish, catalogue: ModelCatalogue) -> Subject:
    """Return the model that is meant.

    Raises:
        KmrunError: nothing answers to the name, a file cannot be read, or options contradict each other.
    """
    path = Path(wish.name)
    if path.suffix in _FILES or ("/" in wish.name and exists(path)) or _holds_model(path):
        return _of_path(path, wish, catalogue)
    size = parse_params(wish.name)
    if size is not None:
        return of_size(size, wish, catalogue)
    model = catalogue.find_model(wish.name)
    if wish.active is not None:
        raise UsageError(f"--active-params is for sizes; {model.id} says its own", "leave it out")
    return of_shapes(model, wish, catalogue, None)


def _holds_model(path: Path) -> bool:
    try:
        return path.is_dir() and any(item.suffix in _FILES for item in path.iterdir())
    except OSError:
        return False


def parse_params(text: str) -> float | None:
    """Return the parameters of `70b`, `1.5B`, `900m`, `7000000000`; None when it is no size."""
    word = text.strip()
    factor = _FACTORS.get(word[-1:].lower())
    number = word[:-1].rstrip() if factor else word
    plain = number.isascii() and number.replace(".", "", 1).isdigit()
    return float(number) * (factor or 1) if plain else None


def of_shapes(model: Model, wish: Wish, catalogue: ModelCatalogue, native: str | None) -> Subject:
    """Return a model in the wished format, else in its own (`native`), else in the usual one.

    Raises:
        KmrunError: there is no such format.
    """
    said = _overridden(wish)
    if wish.bytes_per_param is None and wish.quant is None:
        own = native or (model.native if model.native == "mxfp4" else None)
        quant = catalogue.quant(own or USUAL)
        said.append(f"{quant.id}, {'its own format' if own else 'the usual mix'} (--quant names another)")
    else:
        quant = _format(wish, catalogue)
    if quant.outside_bits and model.experts:
        said.append(
            f"only its experts are {quant.id}; the rest at least {quant.outside_bits:g} bits, as in the smallest files"
        )
    return Subject(model, quant, weights(parameters(model), quant), tuple(said))


def of_size(size: float, wish: Wish, catalogue: ModelCatalogue) -> Subject:
    """Return a model of which only the number of parameters is known, with the cache of the nearest dense one.

    Raises:
        KmrunError: no language model has that size, or there is no such format.
    """
    if not _LEAST <= size <= _MOST:
        raise UsageError(f"no language model has {wish.name} parameters", "write 70b, 1.5b, 900m")
    quant = (
        catalogue.quant(USUAL)
        if wish.quant is None and wish.bytes_per_param is None
        else _format(wish, catalogue)
    )
    like = _nearest_dense(size, catalogue)
    said = _overridden(wish)
    active = wish.active
    if active is None:
        said.append(f"a dense model of {wish.name}: every parameter is read for every token")
        mixtures = _mixtures(size, catalogue)
        if mixtures:
            said.append(f"{' and '.join(mixtures)} would be mixtures of experts of that size: name them")
    elif not _LEAST <= active <= size:
        raise UsageError(
            f"--active-params {active:g} is not within the {size:g} of the model", "write 37b, 3.6b, 900m"
        )
    else:
        said.append(f"{active / 1e9:g}b of {size / 1e9:g}b parameters are read for a token, at any batch")
    said.append(f"cache and attention as in {like.id}, the nearest dense model that is known")
    counted = Parameters(body=size) if active is None else Parameters(body=active, routed=size - active)
    model = Model(
        id=wish.name.lower(),
        layers=like.layers,
        hidden=like.hidden,
        vocab=like.vocab,
        attention=like.attention,
        max_context=like.max_context,
        counted=counted,
    )
    return Subject(model, quant, weights(counted, quant._replace(outside_bits=None)), tuple(said), sized=True)


def _overridden(wish: Wish) -> list[str]:
    """Return what to say where both options give the size of a weight: the exact one counts."""
    both = wish.quant is not None and wish.bytes_per_param is not None
    return [f"--bytes-per-param counts, not {wish.quant}"] if both else []


def _format(wish: Wish, catalogue: ModelCatalogue) -> Quant:
    if wish.bytes_per_param is not None:
        return plain_format(wish.bytes_per_param)
    name = (wish.quant or USUAL).strip().lower()
    bits = name.removesuffix("bpw").strip()
    if name.endswith("bpw") and bits.replace(".", "", 1).isdigit() and bits.isascii():
        return _bits(float(bits))
    return catalogue.find_quant(name)


def _bits(bits: float) -> Quant:
    """Return the format of files named by their average, as EXL2 and EXL3 are: so many bits per weight."""
    if not 1 <= bits <= 16:
        raise UsageError(f"no format has {bits:g} bits per weight", "4.0bpw, 6.5bpw")
    return plain_format(bits / 8)._replace(id=f"{bits:g}bpw", arithmetic=("int8", "fp16", "bf16"))


def _nearest_dense(size: float, catalogue: ModelCatalogue) -> Model:
    # Every entry would have to be read to search for it; these stand for their sizes.
    typical = {
        "llama-3.2-1b": 1.2e9, "llama-3.2-3b": 3.2e9, "llama-3.1-8b": 8e9, "qwen3-14b": 14.8e9,
        "mistral-small-3.2-24b-2506": 23.6e9, "qwen3-32b": 32.8e9, "llama-3.1-70b": 70.6e9,
        "mistral-large-123b-2407": 122.6e9, "llama-3.1-405b": 405.9e9, "smollm2-360m": 0.36e9,
    }  # fmt: skip
    return catalogue.model(min(typical, key=lambda key: max(typical[key] / size, size / typical[key])))


def _mixtures(size: float, catalogue: ModelCatalogue) -> list[str]:
    """Return up to two mixtures whose name carries that size."""
    known = {
        "gpt-oss-20b": 20e9, "gpt-oss-120b": 120e9, "qwen3-30b-a3b": 30e9, "qwen3-235b-a22b": 235e9,
        "qwen3.5-35b-a3b": 35e9, "qwen3-next-80b-a3b": 80e9, "qwen3-coder-480b-a35b": 480e9,
        "deepseek-v3-671b": 671e9, "kimi-k2-1t": 1e12, "glm-4.5-355b-a32b": 355e9, "minimax-m2.5-230b-a10b": 230e9,
        "gemma-4-26b-a4b": 26e9, "deepseek-v2-236b": 236e9,
    }  # fmt: skip
    return [key for key, params in known.items() if abs(params / size - 1) < 0.01][:2]


def _of_path(path: Path, wish: Wish, catalogue: ModelCatalogue) -> Subject:
    if not exists(path):
        raise InvalidInput(
            f"there is no {path}", "a size, a name, a config.json, a folder or a file of weights"
        )
    if path.suffix == ".gguf":
        return _exact(_of_gguf(path, catalogue), wish, catalogue)
    if path.suffix == ".safetensors":
        from kmrun.source.file_parts import all_parts

        return _exact(
            _of_safetensors(all_parts(path), path.parent / "config.json", catalogue), wish, catalogue
        )
    if path.is_dir():
        return _of_folder(path, wish, catalogue)
    if path.suffix != ".json":
        raise UnknownName(f"{path} is no model", "a config.json, a folder, a .gguf or a .safetensors file")
    from kmrun.source.hf_config import read_config

    model, native = read_config(path)
    return of_shapes(model, wish, catalogue, native if native else None)


def _of_folder(path: Path, wish: Wish, catalogue: ModelCatalogue) -> Subject:
    from kmrun.source.file_parts import of_one_model, part_of

    shards = sorted(path.glob("*.safetensors"))
    if shards:
        files = of_one_model(shards)
        return _exact(_of_safetensors(files, path / "config.json", catalogue), wish, catalogue)
    files = sorted(item for item in path.glob("*.gguf") if "mmproj" not in item.name)
    first = [item for item in files if part_of(item) in (None, 1)]
    if len(first) == 1:
        return _exact(_of_gguf(first[0], catalogue), wish, catalogue)
    if first:
        raise UsageError(
            f"{path} holds {len(first)} models", f"name one: {', '.join(item.name for item in first[:6])}"
        )
    if (path / "config.json").exists():
        return _of_path(path / "config.json", wish, catalogue)
    raise InvalidInput(f"{path} holds no model", "no .safetensors, no .gguf, no config.json in it")


def _of_gguf(path: Path, catalogue: ModelCatalogue) -> Subject:
    from kmrun.source.file_parts import all_parts
    from kmrun.source.gguf_header import read_header
    from kmrun.source.gguf_model import decoding_layers, expert_counts, model_of
    from kmrun.source.weight_tensors import inventory

    parts = all_parts(path)
    header = read_header(parts[0])
    tensors = list(header.tensors)
    for other in parts[1:]:
        tensors += read_header(other).tensors
    if not tensors:
        raise InvalidInput(f"{path} holds no tensors")
    experts, used = expert_counts(header)
    found = _read(inventory(tensors, used, experts, decoding_layers(header)), path)
    model = model_of(header, found.parameters, path)
    said = [f"{len(tensors)} tensors of {path.name}: exact bytes"]
    return Subject(model, _known(found.format, catalogue), found.weights, tuple(said))


def _of_safetensors(files: Sequence[Path], config: Path, catalogue: ModelCatalogue) -> Subject:
    from kmrun.source.hf_config import read_config
    from kmrun.source.safetensors_header import read_header
    from kmrun.source.weight_tensors import inventory

    tensors = [tensor for file in files for tensor in read_header(file)]
    if not tensors:
        raise InvalidInput(f"{files[0]} holds no tensors")
    said = [f"{len(tensors)} tensors of {len(files)} file{'s' if len(files) > 1 else ''}: exact bytes"]
    if config.exists():
        model, native = read_config(config)
        moe = model.experts
        used, count = (moe.per_token, moe.number) if moe else (None, None)
        found = _read(inventory(tensors, used, count, model.layers), files[0])
        return Subject(model, _known(native or found.format, catalogue), found.weights, tuple(said))
    found = _read(inventory(tensors, None, None), files[0])
    if found.weights.routed:
        said.append("no config.json beside it: one expert of each layer for a token, the fewest")
    said.append("no config.json beside it: its cache is not known and not counted")
    model = Model(
        id=files[0].stem,
        layers=max(1, found.layers),
        hidden=0,
        vocab=0,
        attention=(),
        tied=found.parameters.tied,
        source=str(files[0]),
        counted=found.parameters,
    )
    return Subject(model, _known(found.format, catalogue), found.weights, tuple(said))


def _read(found: "Inventory", path: Path) -> "Inventory":
    """Return the inventory of a language model, which has weights that every token multiplies with."""
    if found.parameters.multiplied <= 0:
        raise InvalidInput(
            f"{path} holds no layers of a language model", "is it the right file, or all of it?"
        )
    return found


def _known(name: str, catalogue: ModelCatalogue) -> Quant:
    """Return the format of a file's tensors; one that is not listed could be multiplied in anything."""
    try:
        return catalogue.find_quant(name)
    except UnknownName:
        return Quant(name, 16, 16, ("int8", "fp8", "fp16", "bf16"))


def _exact(subject: Subject, wish: Wish, catalogue: ModelCatalogue) -> Subject:
    """Return the subject as its file is, or, where another format was asked for, its shapes in that one."""
    if wish.active is not None:
        raise UsageError("--active-params is for sizes; a file says its own", "leave it out")
    if wish.quant is None and wish.bytes_per_param is None:
        return subject
    quant = _format(wish, catalogue)
    counts = parameters(subject.model)
    said = (*_overridden(wish), f"in {quant.id}, not in the file's own format", *subject.assumptions[1:])
    return Subject(subject.model, quant, weights(counts, quant), said)
