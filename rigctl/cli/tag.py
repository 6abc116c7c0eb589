"""`rigctl tag`: give a stored run tags, or take some away."""

from typing import Annotated

import typer

from rigctl.cli.completion import run_ids
from rigctl.cli.options import Json, StoreAddress


def tag(
    run: Annotated[
        str,
        typer.Argument(metavar="RUN", help="Id of the run, its beginning, or latest~N.", autocompletion=run_ids),
    ],
    tags: Annotated[
        list[str] | None, typer.Argument(metavar="NAME=VALUE", help="Tags to give, as firmware=1.2.3.")
    ] = None,
    remove: Annotated[
        list[str] | None, typer.Option("--remove", metavar="NAME", help="Take this tag away; repeatable.")
    ] = None,
    as_json: Json = False,
    store: StoreAddress = None,
) -> None:
    """Give RUN tags, each in the place of one of the same name; print all it has. `baseline` protects it from prune."""
    from rigctl.base.errors import InputError
    from rigctl.cli.tags import check_name, tags_of
    from rigctl.records import given_tags, tag_text
    from rigctl.store import open_store

    given = tags_of(tags, "tag")
    for name in remove or ():
        check_name(name, "--remove")
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
        left = given_tags(opened.run(info.run).tags)
    if as_json:
        from rigctl.cli.short_documents import TagDocument

        print(TagDocument(run=info.run, tags=dict(left)).model_dump_json(indent=2))
        return
    print(f"{info.run}: {', '.join(tag_text(*each) for each in left.items()) or 'no tags'}")
