#!/usr/bin/python3
"""scikit-learn behind FastAPI, as a peer of the server: the same body in, a score out.

  peer_fastapi.py TABLE PORT DIRECTORY

Trains logistic regression on a CSV table whose last column is the label, then serves it with two workers of uvicorn."""
import os
import pickle
import sys

import numpy
import uvicorn
from fastapi import FastAPI, Request
from sklearn.linear_model import LogisticRegression

app = FastAPI()
PICKLE = "FRESHET_PEER_MODEL"
if PICKLE in os.environ:  # in a worker
    with open(os.environ[PICKLE], "rb") as file:
        MODEL = pickle.load(file)


@app.post("/v2/models/m/infer")
async def infer(request: Request):
    tensor = (await request.json())["inputs"][0]
    rows = numpy.asarray(tensor["data"], dtype=numpy.float32).reshape(tensor["shape"])
    score = MODEL.predict_proba(rows)[:, 1]
    return {"model_name": "m", "outputs": [{"name": "score", "shape": [len(score), 1], "datatype": "FP32",
                                            "data": score.tolist()}]}


def main():
    table = numpy.loadtxt(sys.argv[1], delimiter=",", skiprows=1, dtype=numpy.float32)
    path = os.path.join(sys.argv[3], "peer.pickle")
    with open(path, "wb") as file:
        pickle.dump(LogisticRegression(max_iter=200).fit(table[:, :-1], table[:, -1]), file)
    os.environ[PICKLE] = path
    sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
    uvicorn.run("peer_fastapi:app", host="127.0.0.1", port=int(sys.argv[2]), workers=2, log_level="error",
                access_log=False)


if __name__ == "__main__":
    main()
