"""Tables with columns: through Arrow's stream from whoever gives one, and as arrays by name."""
import freshet
import numpy as np
import pytest


def frame(rng, rows=800):
    town = rng.choice(["Rome", "Oslo", "Lima with a long name"], rows)
    age, score, member = rng.integers(18, 90, rows), rng.normal(size=rows), rng.random(rows) > 0.5
    price = 3.0 * (town == "Oslo") + 0.05 * age + score + member
    return {"town": town, "age": age, "score": score, "member": member, "price": price}


def as_csv(path, columns):
    rows = zip(*(values.tolist() for values in columns.values()))
    text = "\n".join(",".join(repr(cell) if isinstance(cell, float) else str(int(cell) if isinstance(cell, bool) else cell)
                              for cell in row) for row in rows)
    path.write_text(",".join(columns) + "\n" + text + "\n")
    return path


def tables(columns):
    """The same table from every library that is here."""
    made = {"columns": freshet.Columns(columns)}
    for name, make in {"pyarrow": lambda m: m.table(columns), "pandas": lambda m: m.DataFrame(columns),
                       "polars": lambda m: m.DataFrame(columns)}.items():
        try:
            made[name] = make(__import__(name))
        except ImportError:
            print(f"SKIP SKIP SKIP {name} is not here")
    if "pyarrow" in made:
        import pyarrow
        table = made["pyarrow"]
        made["pyarrow in pieces"] = pyarrow.concat_tables([table.slice(0, 300), table.slice(300, 1), table.slice(301)])
        made["pyarrow by dictionary"] = table.set_column(0, "town", table["town"].dictionary_encode())
        made["pyarrow large strings"] = table.set_column(0, "town", table["town"].cast("large_string"))
        made["pyarrow views"] = table.set_column(0, "town", table["town"].cast(pyarrow.string_view()))
        try:
            import duckdb
            made["duckdb"] = duckdb.from_arrow(table)
        except ImportError:
            print("SKIP SKIP SKIP duckdb is not here")
    if "pandas" in made:
        made["pandas categories"] = made["pandas"].assign(town=made["pandas"]["town"].astype("category"))
    return made


def test_every_library_gives_the_model_that_the_file_gives(tmp_path, rng):
    columns = frame(rng)
    of_file = freshet.train(as_csv(tmp_path / "rows.csv", columns), loss="squared")
    assert [column["kind"] for column in of_file.input["columns"]] == ["category", "number", "number", "number", "label"]
    for name, table in tables(columns).items():
        model = freshet.train(table, loss="squared")                 # the last column is the label, as in a file
        assert model.input["columns"] == of_file.input["columns"], name
        for block, values in of_file.weights.items():
            assert np.allclose(values, model.weights[block], atol=1e-5), name
        assert np.allclose(model.predict(table), of_file.predict(tmp_path / "rows.csv"), atol=1e-4), name
        assert abs(model.evaluate(table)["rmse"] - of_file.evaluate(tmp_path / "rows.csv")["rmse"]) < 1e-4, name


def test_labels_may_stand_beside_a_table_and_be_texts(rng):
    columns = frame(rng)
    dear = np.where(columns.pop("price") > 4, "dear", "cheap")
    for name, table in tables(columns).items():
        model = freshet.train(table, dear, epochs=5)
        assert model.classes.tolist() == ["cheap", "dear"], name
        assert (model.predict(table) == dear).mean() > 0.8, name
        model.update(table, dear)
        assert model.rows == 1600


def test_a_text_column_can_be_the_label(rng):
    columns = frame(rng)
    model = freshet.train(freshet.Columns(columns), label="town", epochs=3)
    assert sorted(model.classes) == ["Lima with a long name", "Oslo", "Rome"]


def test_places_where_nothing_is_are_missing(rng):
    pyarrow = pytest.importorskip("pyarrow")
    columns = frame(rng)
    holes = {name: [None if i % 7 == 3 and name != "price" else value for i, value in enumerate(values.tolist())]
             for name, values in columns.items()}
    model = freshet.train(pyarrow.table(holes), loss="squared", epochs=5)
    assert np.isfinite(model.predict(pyarrow.table(holes))).all()
    assert model.evaluate(pyarrow.table(holes))["rmse"] < columns["price"].std()


def test_columns_are_found_by_name_and_others_are_let_be(rng):
    columns = frame(rng)
    model = freshet.train(freshet.Columns(columns), loss="squared")
    turned = freshet.Columns({"more": columns["age"], **dict(reversed(columns.items()))})
    assert np.array_equal(model.predict(turned), model.predict(freshet.Columns(columns)))
    with pytest.raises(freshet.errors.BadInputError, match="found no column 'age'.*there are town, score"):
        model.predict(freshet.Columns({"town": columns["town"], "score": columns["score"]}))


def test_users_may_say_what_columns_are(rng):
    columns = freshet.Columns(frame(rng))
    model = freshet.train(columns, label="price", categorical=["member"], ignore="score", loss="squared")
    kinds = {column["name"]: column["kind"] for column in model.input["columns"]}
    assert kinds == {"town": "category", "age": "number", "score": "ignored", "member": "category", "price": "label"}
    for how, text in [({"label": "prise"}, "did you mean 'price'"), ({"ignore": ["ages"]}, "did you mean 'age'"),
                      ({"numeric": ["town"]}, "its values are texts")]:
        with pytest.raises(freshet.errors.InvalidError, match=text):
            freshet.train(columns, **{"loss": "squared", **how})


def test_what_is_neither_numbers_nor_texts_is_refused_by_name():
    pyarrow = pytest.importorskip("pyarrow")
    table = pyarrow.table({"when": pyarrow.array([1, 2], pyarrow.timestamp("s")), "y": [0, 1]})
    with pytest.raises(freshet.errors.InvalidError, match="column 'when' is of Arrow's type 'tss:'"):
        freshet.train(table)


def test_a_table_is_read_where_it_lies(rng):
    pyarrow = pytest.importorskip("pyarrow")
    X = rng.normal(size=(200_000, 8)).astype(np.float32)
    table = pyarrow.table({f"x{j}": X[:, j].copy() for j in range(8)} | {"label": X[:, 0]})
    before = pyarrow.total_allocated_bytes()
    freshet.train(table)
    assert pyarrow.total_allocated_bytes() == before
