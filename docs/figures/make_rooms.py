"""Draw the rooms of the package: ``python docs/figures/make_rooms.py`` writes rooms.svg.

Where a room stands is written down here, the arrows are the imports of the package as they are.
An arrow is left out where a longer way leads to the same room. The background is opaque, so that
the picture reads the same on light and dark pages.
"""

from pathlib import Path

import grimp
from stamp import KEY, source

WIDTH, HEIGHT = 960, 860
INK, FAINT = "#222222", "#666666"
FACE, WORK, JUDGE, STATEMENT, DATA = "#EEEEEE", "#F6E3F0", "#FCE0CC", "#FFF3C4", "#D9EDF7"

# Modules of a room, where it stands (left, top, width), its colour, the stops of the walk that it
# holds, and what it does.
ROOMS = [
    (["cli"], 180, 20, 200, FACE, "", "the command owasvm"),
    (["experiments"], 480, 105, 200, FACE, "", "the paper's study"),
    (["inspection"], 15, 190, 175, FACE, "", "displays, wrong labels"),
    (["persistence", "_model_checks"], 240, 190, 150, FACE, "", "model files"),
    (["warmup"], 402, 190, 98, FACE, "", "compile ahead"),
    (["export"], 590, 190, 90, FACE, "", "ONNX"),
    (["datasets"], 700, 190, 200, FACE, "", "the paper's data"),
    (["estimators", "owasvm"], 330, 275, 300, FACE, "13", "scikit-learn's face"),
    (["path"], 700, 275, 200, FACE, "", "grids, warm starts"),
    (["models"], 60, 360, 200, WORK, "", "the paper's formulations"),
    (["solvers"], 330, 360, 300, WORK, "67", "newton, interior, general"),
    (["loss"], 700, 360, 200, DATA, "", "the hinge, for users"),
    (["certificate"], 330, 445, 300, JUDGE, "8", "judge: objective, bound, gap"),
    (["progress"], 810, 445, 130, FACE, "", "lines, records"),
    (["preparation", "distinct"], 12, 530, 236, STATEMENT, "2", "X, y, sample_weight"),
    (["problem"], 260, 530, 200, STATEMENT, "5", "stated once, checked"),
    (["intercept"], 480, 530, 180, STATEMENT, "", "the best b"),
    (["solution"], 800, 615, 150, STATEMENT, "", "what comes out"),
    (["samples"], 180, 615, 260, DATA, "4", "the data as operators"),
    (["losses"], 520, 615, 260, DATA, "", "value, prox, conjugate"),
    (["kernels"], 60, 700, 200, DATA, "", "kernel values"),
    (["costs", "grouping"], 600, 700, 200, DATA, "", "who pays what"),
    (["rounding"], 300, 785, 200, DATA, "", "what doubles can add"),
    (["weights"], 600, 785, 200, DATA, "", "families, quantifiers"),
]
TALL = 50


def find_arrows(graph: grimp.ImportGraph) -> list[tuple[int, int]]:
    """Imports between rooms that no longer way replaces."""
    room_of = {module: k for k, (modules, *_) in enumerate(ROOMS) for module in modules}
    below: dict[int, set[int]] = {k: set() for k in range(len(ROOMS))}
    for module in graph.modules:
        for imported in graph.find_modules_directly_imported_by(module):
            first, second = (
                room_of.get((name + ".").split(".")[1] or "owasvm") for name in (module, imported)
            )
            if first is not None and second is not None and first != second:
                below[first].add(second)

    def reach(room: int) -> set[int]:
        return below[room].union(*(reach(other) for other in below[room]))

    return [
        (room, other)
        for room, others in below.items()
        for other in others
        if not any(other in reach(via) for via in others - {other})
    ]


def draw_arrow(start: int, end: int) -> str:
    _, left, top, width, *_ = ROOMS[start]
    _, other_left, other_top, other_width, *_ = ROOMS[end]
    if top == other_top:
        edge = left + width if left < other_left else left
        other_edge = other_left if left < other_left else other_left + other_width
        path = f"M{edge} {top + TALL / 2} H{other_edge}"
    else:
        x, other_x = left + width / 2, other_left + other_width / 2
        # Leave and enter on the side where the other room is.
        x += max(-0.35 * width, min(0.35 * width, 0.3 * (other_x - x)))
        other_x += max(-0.35 * other_width, min(0.35 * other_width, 0.3 * (x - other_x)))
        y, bend = top + TALL, 0.5 * (other_top - top - TALL)
        path = f"M{x:.0f} {y} C{x:.0f} {y + bend} {other_x:.0f} {other_top - bend} "
        path += f"{other_x:.0f} {other_top}"
    return f'<path d="{path}" fill="none" stroke="{FAINT}" marker-end="url(#head)"/>'


def draw_room(
    modules: list[str], left: int, top: int, width: int, colour: str, stops: str, text: str
) -> str:
    middle = left + width / 2
    title = ", ".join(name for name in modules if name != "owasvm" and name[0] != "_")
    parts = [
        f'<rect x="{left}" y="{top}" width="{width}" height="{TALL}" rx="8" fill="{colour}" '
        f'stroke="{INK}"/>',
        f'<text x="{middle}" y="{top + 21}" font-weight="bold" font-size="15">{title}</text>',
        f'<text x="{middle}" y="{top + 39}" font-size="12.5">{text}</text>',
    ]
    for place, stop in enumerate(stops):
        x = left + 18 + 24 * place
        parts.append(f'<circle cx="{x}" cy="{top + 16}" r="10" fill="{INK}"/>')
        parts.append(f'<text x="{x}" y="{top + 20}" font-size="12" fill="white">{stop}</text>')
    return "\n".join(parts)


def main() -> None:
    graph = grimp.build_graph("owasvm", exclude_type_checking_imports=True, cache_dir=None)
    arrows = "\n".join(draw_arrow(*arrow) for arrow in sorted(find_arrows(graph)))
    here = (room for room in ROOMS if f"owasvm.{room[0][0]}" in graph.modules)
    rooms = "\n".join(draw_room(*room) for room in here)
    picture = f"""\
<!-- {KEY}: {source(__file__)} -->
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img"
 font-family="sans-serif" text-anchor="middle" fill="{INK}">
<title>The rooms of owasvm and who imports whom</title>
<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7"
 orient="auto"><path d="M0 0 L8 4 L0 8 z" fill="{FAINT}"/></marker></defs>
<rect width="{WIDTH}" height="{HEIGHT}" rx="12" fill="#FFFFFF"/>
{arrows}
{rooms}
</svg>
"""
    (Path(__file__).resolve().parent / "rooms.svg").write_text(picture)


if __name__ == "__main__":
    main()
