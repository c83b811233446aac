"""The order of the examples within their sections: from the idea to its finer points."""

from pathlib import Path

ORDER = (
    "plot_weights",
    "plot_certificate",
    "plot_exact_and_two_step",
    "plot_path",
    "plot_rare_group",
    "plot_risk_averse",
    "plot_imbalanced",
    "plot_shrinking",
    "plot_label_noise",
    "plot_wrong_labels",
    "plot_branch_and_bound",
    "plot_choose_C_and_alpha",
    "plot_kernels",
    "plot_displays",
    "plot_calibration",
    "plot_large_linear",
    "plot_onnx",
)


class ByIdea:
    """Sort key of sphinx-gallery: examples that are not listed come last, by name."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, filename: str) -> tuple[int, str]:
        name = Path(filename).stem
        return (ORDER.index(name) if name in ORDER else len(ORDER)), name
