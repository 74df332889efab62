#!/usr/bin/env python3
"""moto's S3 on a free port, with the bucket `palmette`, one request at a time; prints the environment for clients.

    pip install 'moto[server]'
    lab/checks/replicas/s3.py > s3.env & sleep 5; set -a; . ./s3.env

By itself `moto_server` answers requests in threads, and looks for an object and makes it in two steps: of six conditional puts at once,
more than one was answered with 200 in 60 of 300 races (moto 5.2.1). A log needs a store in which one wins, as S3 promises, so that
requests go one after the other here."""

import boto3
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from werkzeug.serving import make_server

server = make_server("127.0.0.1", 0, DomainDispatcherApplication(create_backend_app), threaded=False)
endpoint = f"http://127.0.0.1:{server.server_port}"
print(f"AWS_ENDPOINT_URL={endpoint}\nAWS_ALLOW_HTTP=true\nAWS_ACCESS_KEY_ID=x\nAWS_SECRET_ACCESS_KEY=x\nAWS_REGION=us-east-1", flush=True)


def make_bucket():
    boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1", aws_access_key_id="x", aws_secret_access_key="x").create_bucket(Bucket="palmette")


if __name__ == "__main__":
    import threading

    threading.Thread(target=make_bucket, daemon=True).start()
    server.serve_forever()
