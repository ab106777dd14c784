"""``smalti tune codebook``: codebook size against width, at one capacity."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from smalti.cli.options import Threads, use_threads
from smalti.cli.output import AsJson, show, tell
from smalti.errors import ConfigError, require

if TYPE_CHECKING:
    from smalti.recipes.images import AutoencoderConfig
    from smalti.recipes.images.codebook_balance import ArmFigures, Findings

# The paper's.
CAPACITY = 65_536


def codebook(
    output: Annotated[Path, typer.Option("--output", "-o", help="The directory of the study.")],
    config: Annotated[
        Path | None,
        typer.Argument(help="A YAML file of a convolutional autoencoder; see configs/."),
    ] = None,
    data: Annotated[
        str | None,
        typer.Option(help="Images: a known set, a file or a folder; else cifar10, or digits."),
    ] = None,
    capacity: Annotated[
        int | None, typer.Option(help=f"Codebook size times width; else {CAPACITY}.")
    ] = None,
    widths: Annotated[str | None, typer.Option(help="Widths to try: 1,2,4,8.")] = None,
    pairs: Annotated[
        str | None, typer.Option(help="Sizes and widths to try, of one capacity: 512x128,1024x64.")
    ] = None,
    steps: Annotated[int | None, typer.Option(min=1, help="Training steps of each arm.")] = None,
    seed: Annotated[
        list[int] | None,
        typer.Option(min=0, max=2**63 - 1, help="Of all that is trained; may be given often."),
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(min=1, help="As many seeds, from 0 on, instead of --seed.")
    ] = None,
    controls: Annotated[
        bool,
        typer.Option("--controls", help="Also train arms that tell where a difference comes from."),
    ] = False,
    changes: Annotated[
        list[str] | None,
        typer.Option("--set", help="Another setting than the config's: model.width=128."),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with a study that was stopped.")
    ] = False,
    threads: Threads = None,
    as_json: AsJson = False,
) -> None:
    """Train codebooks of one capacity alone and as a pool to choose from; print what each costs.

    Every arm is an ordinary run inside the directory. A study that a signal stopped ends with
    status 1 and goes on with --resume.

    Example: smalti tune codebook --capacity 65536 --steps 600 -o studies/balance
    """
    from smalti.recipes.images import codebook_balance

    use_threads(threads)
    tried = _pairs(capacity, widths, pairs)
    require(seed is None or seeds is None, "give --seed or --seeds, not both")
    settings = _settings(config, data, steps, changes or ())
    found = codebook_balance.tune_codebook(
        settings,
        tried,
        output,
        seeds=seed or (list(range(seeds)) if seeds else [settings.training.seed]),
        controls=controls,
        resume=resume,
        say=lambda word: tell([word]),
    )
    if found is None:
        raise typer.Exit(1)
    if as_json:
        show(found.as_dict(), as_json)
        return
    _print(found, output)


def _pairs(
    capacity: int | None, widths: str | None, pairs: str | None
) -> tuple[tuple[int, int], ...]:
    """The pairs that were asked for."""
    from smalti.recipes.images.codebook_balance import pairs_of, require_pairs

    if pairs is None:
        given = None if widths is None else _numbers("--widths", widths, r"(\d+)", "1,2,4,8")
        own = CAPACITY if capacity is None else capacity
        return pairs_of(own, None if given is None else [width for (width,) in given])
    require(widths is None, "give --widths or --pairs, not both")
    listed = _numbers("--pairs", pairs, r"(\d+)x(\d+)", "512x128,1024x64")
    checked = require_pairs([(size, width) for size, width in listed])
    product = checked[0][0] * checked[0][1]
    require(
        capacity in {None, product},
        f"the pairs have a capacity of {product}, and --capacity is {capacity}; leave one out",
    )
    return checked


def _numbers(option: str, text: str, pattern: str, example: str) -> list[tuple[int, ...]]:
    found = [re.fullmatch(pattern, word.strip()) for word in text.split(",")]
    if not all(found):
        raise ConfigError(f"expected {option} such as {example}, got {text!r}")
    return [tuple(map(int, match.groups())) for match in found if match is not None]


def _settings(
    config: Path | None, data: str | None, steps: int | None, changes: Sequence[str]
) -> AutoencoderConfig:
    """The config, with what the options say in its place; says what is chosen unasked."""
    from smalti.recipes.images import AutoencoderConfig
    from smalti.recipes.images.codebook_balance import default_config, default_source
    from smalti.training import as_settings, read_settings, with_changes

    if config is None:
        source = default_source() if data is None else data
        if data is None:
            tell([f"no images named, so these are: {source}; --data names others"])
        content = default_config(source).model_dump(mode="json")
    else:
        # The file's own settings first, so that a fault is told with the file's name.
        content = read_settings(AutoencoderConfig, config).model_dump(mode="json")
        if data is not None:
            content["data"]["source"] = data
    if steps is not None:
        content["training"] |= {"steps": steps, "epochs": None}
    settings = as_settings(AutoencoderConfig, with_changes(content, changes))
    unused = [f"model.{key}" for key in ("quantizer", "dim") if key in settings.model]
    unused += ["prior"] if settings.prior is not None else []
    if unused:
        tell([f"not used, since the arms bring their own or have none: {', '.join(unused)}"])
    return settings


def _print(found: Findings, output: Path) -> None:
    judged = found.data
    typer.echo(
        f"{judged['images']:,} images ({judged['part']}): {judged['source']}; {found.steps} steps, "
        f"seeds {', '.join(map(str, found.seeds))}"
    )
    show([_row(one) for one in found.arms], as_json=False, whole=True)
    typer.echo("bits: a place, all words equally likely; coded: with the words' shares in training")
    typer.echo("\nshare of held-out places for which adaptive chose each codebook, %")
    show(_choices(found), as_json=False, whole=True)
    typer.echo("\nrelative gradient gap while training")
    show(_gaps(found), as_json=False, whole=True)
    typer.echo("")
    for sentence in found.sentences():
        typer.echo(sentence)
    typer.echo(f"all figures: {output / 'results.json'}")


def _row(one: ArmFigures) -> dict[str, str]:
    """An arm's figures; a spread where there are several seeds."""

    def told(figure: str, form: Callable[[float], str]) -> str:
        spread = one.spread(figure)
        return form(one.mean(figure)) + ("" if spread is None else f" ±{form(spread)}")

    size, width = one.arm.pool[0] if len(one.arm.pool) == 1 else ("pool", "-")
    return {
        "arm": one.arm.name,
        "size": str(size),
        "width": str(width),
        "MSE": told("mse_0_to_1", "{:.6f}".format),
        "PSNR": told("psnr_db", "{:.2f}".format),
        "bits": told("rate_bits", "{:.2f}".format),
        "bits/dim": told("rate_bits_per_dim", "{:.4f}".format),
        "coded": told("coded_bits", "{:.2f}".format),
        "in use": f"{one.mean('codes_in_use'):.0f} of {one.mean('codewords'):.0f}",
        "gap": told("gradient_gap", "{:.2g}".format),
        "relative": told("relative_gradient_gap", "{:.3f}".format),
        "numbers": str(one.arm.codebook_floats),
        "seconds": f"{one.mean('seconds'):.1f}",
    }


def _choices(found: Findings) -> list[dict[str, str]]:
    """A row for each look at the pool while it was trained, and one for the test images."""
    names = [f"{size}x{width}" for size, width in found.pairs]
    pool = found.adaptive
    seen: list[tuple[str, Any]] = [
        (f"{entry['step']:.0f}", entry["shares"]) for entry in pool.mean_history()
    ]
    ended = [figures["shares"] for figures in pool.seeds.values()]
    seen.append(
        (str(found.data["part"]), [sum(shares) / len(ended) for shares in zip(*ended, strict=True)])
    )
    rows = []
    for step, shares in seen:
        told = zip(names, shares, strict=True)
        rows.append({"step": step, **{name: f"{100 * share:.1f}" for name, share in told}})
    return rows


def _gaps(found: Findings) -> list[dict[str, str]]:
    return [
        {
            "arm": one.arm.name,
            **{
                f"step {entry['step']:.0f}": f"{entry['relative_gradient_gap']:.3f}"
                for entry in one.mean_history()
            },
        }
        for one in found.arms
    ]
