"""Give RUN tags, or remove some of its tags; print all its tags.

A new tag replaces a tag of the same name. The tag `baseline` protects the run from `rigctl runs prune`.
"""

from typing import Annotated

import typer

from rigctl.base.errors import InputError
from rigctl.cli.options import Json, StoreAddress, complete_run
from rigctl.cli.output import Versioned, say
from rigctl.cli.stored_runs import check_tag_name, parse_tags
from rigctl.records import tag_text, user_tags
from rigctl.store import open_store


class TagDocument(Versioned):
    """The tags of a run."""

    run: str
    tags: dict[str, str]


def tag_run(
    run: Annotated[
        str,
        typer.Argument(metavar="RUN", help="Run id, its beginning or end, or latest~N.", autocompletion=complete_run),
    ],
    tags: Annotated[
        list[str] | None, typer.Argument(metavar="NAME=VALUE", help="Tags to give, as firmware=1.2.3.")
    ] = None,
    remove: Annotated[
        list[str] | None, typer.Option("--remove", metavar="NAME", help="Remove this tag; repeatable.")
    ] = None,
    as_json: Json = False,
    store: StoreAddress = None,
) -> None:
    given = parse_tags(tags, "tag")
    for name in remove or ():
        check_tag_name(name, "--remove")
        if name in given:
            raise InputError(f"tag {name}: is both given and removed. Name it once")
    with open_store(store, create=False) as opened:
        info = opened.run(run)
        for name in remove or ():
            if name not in info.tags:
                raise InputError(f"run {info.run} has no tag {name}. `rigctl tag {info.run}` prints those that it has")
        opened.history.tag(info.run, given)
        for name in remove or ():
            opened.history.untag(info.run, name)
        left = user_tags(opened.run(info.run).tags)
    if as_json:
        print(TagDocument.text_of(run=info.run, tags=left))
    else:
        say(f"{info.run}: {', '.join(tag_text(*each) for each in left.items()) or 'no tags'}")
