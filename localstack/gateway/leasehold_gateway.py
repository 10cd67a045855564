"""LocalStack's DynamoDB provider over dynoxide instead of Amazon's DynamoDB Local.

LocalStack keeps what it keeps by itself (tags, times to live, the list of replicas); tables and items are dynoxide's.
An engine knows no accounts and no regions, so each account and region has an engine of its own.
"""

import os
import signal
import subprocess
import tempfile
import threading

from localstack.aws.api import CommonServiceException
from localstack.aws.forwarder import AwsRequestProxy, HttpFallbackDispatcher
from localstack.http import route
from localstack.http.proxy import Proxy
from localstack.services.dynamodb.v2.provider import DynamoDBProvider
from localstack.services.edge import ROUTER
from localstack.services.plugins import Service, aws_provider


class Engine:
    """One process with one region's tables. It ends when the pipe to its stdin closes, so it never outlives us."""

    def __init__(self):
        command = os.environ["LEASEHOLD_DYNAMODB_EMULATOR"]
        self.process = subprocess.Popen([command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        address = self.process.stdout.readline().strip()
        if not address:
            raise RuntimeError(f"{command} did not start")
        self.url = f"http://{address}"
        self.forward = AwsRequestProxy(self.url)
        self.forward.proxy = EngineProxy(self.url)
        self.stopping = False
        threading.Thread(target=self._watch, daemon=True).start()

    def stop(self):
        self.stopping = True
        self.process.stdin.close()
        self.process.wait()

    def _watch(self):
        code = self.process.wait()
        if not self.stopping:
            # A new engine would answer as if the tables of this one had never been there.
            print(f"an engine has ended ({code}), its tables are gone: the gateway ends too", flush=True)
            os.kill(os.getpid(), signal.SIGTERM)


class EngineProxy(Proxy):
    """Gives an engine's ARNs the form of DynamoDB Local's, which LocalStack replaces by account and region."""

    def forward(self, *args, **kwargs):
        response = super().forward(*args, **kwargs)
        response.data = response.data.replace(b"arn:aws:dynamodb:dynoxide:", b"arn:aws:dynamodb:ddblocal:")
        return response


class Engines:
    """Stands where the provider expects its one DynamoDB Local."""

    def __init__(self):
        self.lock = threading.Lock()
        self.of_region = {}

    def start_dynamodb(self):
        """Nothing to do: an engine starts with its region's first request."""

    def stop_dynamodb(self):
        with self.lock:
            for engine in self.of_region.values():
                engine.stop()
            self.of_region.clear()

    def engine(self, account_id, region_name):
        key = (account_id, DynamoDBProvider.ddb_region_name(region_name))
        with self.lock:
            if key not in self.of_region:
                self.of_region[key] = Engine()
            return self.of_region[key]

    def proxy(self, context, service_request=None):
        try:
            return self.engine(context.account_id, context.region).forward(context, service_request)
        except CommonServiceException as error:
            # What DynamoDB Local says to an update that LocalStack then makes by itself, such as of replicas.
            if error.message and error.message.startswith("At least one of ProvisionedThroughput, BillingMode"):
                error.message = "Nothing to update"
            raise


class DynoxideProvider(DynamoDBProvider):
    @staticmethod
    def _new_dynamodb_server():
        return Engines()

    def on_before_start(self):
        super().on_before_start()
        ROUTER.add(self)

    def on_before_stop(self):
        super().on_before_stop()
        self.server.stop_dynamodb()

    def get_forward_url(self, account_id, region_name):
        return self.server.engine(account_id, region_name).url

    @route("/_leasehold/engines", methods=["GET"])
    def engines(self, _request):
        """Shows that it is this provider that answers: LocalStack falls back to its own where it cannot load one."""
        return {"/".join(key): engine.url for key, engine in self.server.of_region.items()}


@aws_provider(api="dynamodb", name="dynoxide")
def dynamodb():
    provider = DynoxideProvider()
    return Service.for_provider(
        provider, dispatch_table_factory=lambda it: HttpFallbackDispatcher(it, it.get_forward_url)
    )


@aws_provider(api="s3", name="leasehold")
def s3():
    """LocalStack's own, but for where objects are kept: by default in a folder of /tmp that all clones would share."""
    from localstack.services.s3.provider import S3Provider
    from localstack.services.s3.storage.ephemeral import EphemeralS3ObjectStore

    return Service.for_provider(S3Provider(EphemeralS3ObjectStore(os.path.join(tempfile.gettempdir(), "s3"))))
