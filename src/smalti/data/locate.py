"""Where data sets are: in the folder that SMALTI_DATA names, or in ``data`` where one stands."""

from __future__ import annotations

import os
from pathlib import Path

from smalti.errors import DataError, require

VARIABLE = "SMALTI_DATA"
# By the beginning of a name: where a set is public.
PUBLIC = {
    "images/cifar10": "https://www.cs.toronto.edu/~kriz/cifar.html",
    "images/mnist": "https://yann.lecun.com/exdb/mnist",
    "images/fashion_mnist": "https://github.com/zalandoresearch/fashion-mnist",
    "images/tiny_imagenet": "http://cs231n.stanford.edu/tiny-imagenet-200.zip",
    "glue": "https://gluebenchmark.com/tasks",
    "multi30k": "https://github.com/multi30k/dataset",
    "wmt14": "https://www.statmt.org/wmt14/translation-task.html",
    "text/ptb": "https://catalog.ldc.upenn.edu/LDC99T42 (in Mikolov's version)",
    "text/wikitext2": "https://huggingface.co/datasets/Salesforce/wikitext",
    "text/agnews": "http://groups.di.unipi.it/~gulli/AG_corpus_of_news_articles.html",
    "text/trec": "https://cogcomp.seas.upenn.edu/Data/QA/QC",
    "weights/cifar10_resnet": "https://github.com/akamaster/pytorch_resnet_cifar10",
}


def locate(name: str) -> Path:
    """The file of a data set, such as ``glue/STS-B/dev.tsv``, plain or gzipped.

    Looks in the folder that the environment variable SMALTI_DATA names, then in ``data``.
    """
    folders = [Path(os.environ[VARIABLE])] if os.environ.get(VARIABLE) else []
    folders.append(Path("data"))
    for folder in folders:
        for path in (folder / name, folder / f"{name}.gz"):
            if path.is_file():
                return path
    places = " and ".join(str(folder.resolve()) for folder in folders)
    public = next((where for start, where in PUBLIC.items() if name.startswith(start)), None)
    require(
        public is not None,
        f"there is no data set {name!r}; the known ones begin with: {', '.join(PUBLIC)}",
        DataError,
    )
    raise DataError(
        f"looked for {name} in {places}, and it is not there; the set is public at {public}: "
        f"put the file there, or let {VARIABLE} name the folder that has it"
    )
