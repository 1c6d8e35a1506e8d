"""Spark decides as one call does; `make test-long` installs it, and needs Java 17."""

from __future__ import annotations

import shutil
import sys

import pyarrow as pa
import pytest

from engines.cases import CASES, case, check_decided, expired, of_other_version
from fairchance.engines import decide_spark

pytestmark = [
    pytest.mark.long,
    pytest.mark.filterwarnings("ignore::fairchance.errors.LearningWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning:pyspark"),
    pytest.mark.filterwarnings("ignore::FutureWarning:pyspark"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),  # Spark's own sockets
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.xdist_group("spark"),
]


@pytest.fixture(scope="module")
def spark():
    """Return a Spark of this machine, whose record batches have at most 70 rows."""
    sql = pytest.importorskip("pyspark.sql", reason="Spark is not installed; run `make test-long`")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java 17, and there is no java; install a JDK")
    build = sql.SparkSession.builder.master("local[2]").appName("fairchance")
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "70",
        "spark.sql.shuffle.partitions": "5",
    }
    for key, value in settings.items():
        build = build.config(key, value)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        session = build.getOrCreate()
        session.sparkContext.setLogLevel("OFF")
        yield session
        session.stop()


@pytest.mark.parametrize("name", CASES)
def test_spark_decides_as_one_call(spark, name):
    one = case(name)
    people = spark.createDataFrame(one.table).repartition(5)
    check_decided(one, decide_spark(one.policy, people).toArrow())
    kept = decide_spark(one.policy, people, keep=True)
    assert kept.columns[: len(people.columns)] == people.columns
    assert kept.schema.fields[: len(people.columns)] == people.schema.fields
    check_decided(one, kept.toArrow(), "decided_")


def test_empty_partitions_are_decided(spark):
    one = case("certified, blind")
    people = spark.createDataFrame(one.table).repartition(5).where("loan < 0")
    assert decide_spark(one.policy, people).count() == 0


@pytest.mark.parametrize("change", [expired, of_other_version])
def test_the_sentence_of_a_refusal_survives_in_sparks_error(spark, change):
    one = case("certified, blind")
    people = spark.createDataFrame(one.table)
    sentence = "expired at 2020-01-31" if change is expired else "made with fairchance 0.0.9"
    with pytest.raises(Exception, match=sentence):
        decide_spark(change(one), people).collect()
    with pytest.raises(Exception, match="no column 'income'"):
        decide_spark(one.policy, people.drop("income")).collect()
    assert pa.types.is_boolean(decide_spark(one.policy, people).toArrow()["accepted"].type)
