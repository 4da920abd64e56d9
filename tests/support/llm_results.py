"""Published results of language models (tests/core/llm/measurements.csv), each as the question that it answers."""

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from kmrun.core.card import Card, per_device
from kmrun.core.llm_ceiling import Decode, Load, decode, layer_split, prefill_rate, read_bytes
from kmrun.core.llm_fit import OVERHEAD_BYTES, Fit, fit, usable_bytes
from kmrun.core.llm_model import Model, parameters
from kmrun.core.llm_quant import Quant, weights
from kmrun.core.llm_roof import compute_roof, memory_roof
from kmrun.source.catalogue import load_cards
from kmrun.source.llm_subject import Wish, read_subject
from kmrun.source.model_catalogue import load_models

FILE = Path(__file__).parent.parent / "core" / "llm" / "measurements.csv"
CARDS = {
    "A100 PCIe 80GB": "a100-pcie-80gb",
    "A100 SXM 80GB": "a100-sxm-80gb",
    "B200 SXM": "b200",
    "DGX Spark GB10": "gb10",
    "H200 SXM": "h200-sxm",
    "H800 SXM": "h800-sxm",
    "M1 7-core": "m1",
    "M1 Max 32-core": "m1-max",
    "M2 Ultra 76-core": "m2-ultra",
    "M3 Max 40-core": "m3-max-40c",
    "M5 Max": "m5-max-40c",
    "MI250X (1 GCD)": "mi250x",
    "RTX 3060": "rtx-3060-12gb",
    "RTX 4000 Ada 20GB": "rtx-4000-ada",
    "RTX PRO 6000 Blackwell SE": "rtx-pro-6000-blackwell-server",
    "RTX PRO 6000 Blackwell WS": "rtx-pro-6000-blackwell-ws",
    "Strix Halo (Ryzen AI Max+ 395)": "strix-halo-395",
}
QUANTS = {
    "int4 (g32)": "int4-g32",
    "int4 g32": "int4-g32",
    "MLX 4-bit": "mlx-4bit",
    "8-bit MLX": "mlx-8bit",
    "FP4": "nvfp4",
    "": "nvfp4",  # not stated: the smallest that MLPerf submissions use
}
UNLISTED = ("EPYC 9274F", "EPYC 9374F", "Arc 140V", "Radeon 780M", "Arc Pro B60 (dual card)")
"""Machines that are no cards of the database: made of the row's own figures."""

NOT_DECODING = "do not use as tg"
"""Note of a row that skips the head, which decoding cannot."""


@dataclass(frozen=True)
class Published:
    """A row: what was run on what, and what came out."""

    row: dict[str, str]
    card: Card
    model: Model
    quant: Quant
    load: Load

    @property
    def name(self) -> str:
        row = self.row
        return f"{row['hardware']} x{row['n_gpus']} {row['model']} {row['quant']} {row['prompt_len']}/{row['batch']}"

    def figure(self, column: str) -> float | None:
        return float(self.row[column]) if self.row[column] else None

    @property
    def memory(self) -> float:
        known = memory_roof(self.card)
        assert known is not None
        return known

    @property
    def alone(self) -> bool:
        """One stream on one card."""
        return self.row["n_gpus"] == "1" and self.row["batch"] == "1"

    @property
    def decode(self) -> Decode:
        roof = compute_roof(self.card, self.quant.arithmetic)
        if self.row["split"] == "layer":
            return layer_split(self.load, self.memory, roof)
        return decode(self.load, self.memory, roof)

    @property
    def prefill(self) -> float | None:
        single = self.row["batch"] == "1" and self.row["prompt_len"]
        load = self.load._replace(context=int(self.row["prompt_len"]) if single else None, batch=1)
        return prefill_rate(load, self.memory, compute_roof(self.card, self.quant.arithmetic))

    @property
    def read_gb(self) -> float:
        return read_bytes(self.load) / 1e9

    def fit(self, context: int) -> Fit:
        cards = self.load.cards
        usable = usable_bytes(self.card, cards)
        return fit(self.model, self.load.weights.file, context, 1, 16, OVERHEAD_BYTES * cards, usable)


def published(speculative: bool = False, only: Sequence[str] = ()) -> Iterator[Published]:
    """Yield the rows that say that no token was drafted, or with `speculative` the others; `only` of some models."""
    cards, models = load_cards(), load_models()
    with FILE.open(newline="", encoding="utf-8") as file:
        for row in csv.DictReader(file):
            if (row["spec_decode"] != "no") != speculative or (only and row["model"] not in only):
                continue
            quant = models.find_quant(QUANTS.get(row["quant"], row["quant"].partition(" (")[0]))
            subject = read_subject(Wish(row["model"], quant.id), models)
            load = Load(
                subject.model,
                weights(parameters(subject.model), quant),
                context=_context(row),
                batch=1 if row["batch"] == "1" else 1 << 16,
                cards=int(row["n_gpus"]),
            )
            yield Published(row, _card(row, cards), subject.model, quant, load)


def _context(row: dict[str, str]) -> int | None:
    """Return the tokens that stood before every decoded one; a short prompt bounds nothing worth counting."""
    prompt = int(row["prompt_len"] or 0)
    return prompt if row["batch"] == "1" and prompt >= 2048 and row["decode_tok_s"] else None


def _card(row, cards) -> Card:
    hardware = row["hardware"]
    if hardware == "RTX 3050 6GB":
        # The 8 GB card with 18 SMs at 1470 MHz and 96 bits.
        return replace(
            cards.card("rtx-3050-8gb"),
            id="rtx-3050-6gb",
            sm_count=18,
            vector_clock_hz=1.47e9,
            matmul_clock_hz=1.47e9,
            memory_bytes=6 << 30,
            bus_bits=96,
        )
    if hardware in UNLISTED:
        figures = {"mem_gb_per_s": float(row["hw_bw_gbs"]) * 1e9}
        if row["hw_fp16_tflops"]:
            figures["fp16_tensor_tflops"] = float(row["hw_fp16_tflops"]) * 1e12
        return Card(hardware, hardware, "other", "unknown", "unknown", memory_type="ddr5", published=figures)
    card = cards.find(CARDS.get(hardware, hardware))
    return per_device(card) if "GCD" in hardware else card
