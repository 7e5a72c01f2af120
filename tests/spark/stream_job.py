"""A query that teaches a server what is written into a folder: stream_job.py FOLDER CHECKPOINTS URL [CRASH]. With CRASH it
is gone after that micro-batch was posted, before Spark notes that it was done."""
import os
import sys

import spark_cluster
from freshet.spark import learn_into


def main(folder, checkpoints, url, crash=None):
    spark = spark_cluster.session("local[2]", **{"spark.sql.shuffle.partitions": "2"})
    spark.sparkContext.setLogLevel("ERROR")
    learn = learn_into(url, id_col="name", features_col="x", told=lambda number, told: print(number, told, flush=True))

    def learn_and_crash(frame, number):
        learn(frame, number)
        if crash is not None and number == int(crash):
            os._exit(9)

    rows = spark.readStream.schema("name string, x array<double>, label int").option("maxFilesPerTrigger", 1).json(folder)
    query = rows.writeStream.option("checkpointLocation", checkpoints).trigger(availableNow=True).foreachBatch(learn_and_crash).start()
    query.awaitTermination()
    spark.stop()


main(*sys.argv[1:])
