"""Made-up secrets and harmless look-alikes for the tests of redaction: seeded, so no value that looks real is stored."""

from __future__ import annotations

import base64
import string
from collections.abc import Callable, Iterator
from random import Random

LETTERS = string.ascii_letters
WORD = LETTERS + string.digits
HEX = "0123456789abcdef"
BASE64 = WORD + "+/"
URLSAFE = WORD + "_-"
UPPER = string.ascii_uppercase + string.digits

# A log line with a place for what may hold a secret.
TEMPLATES = (
    "{x}",
    "[rank3]: {x}",
    "2024-05-01 12:00:01,123 - trainer - ERROR - request failed: {x} (attempt 3)",
    "E0501 12:00:01.123000 17635 torch/distributed/elastic/multiprocessing/api.py:869] {x}",
    "+ {x}",
    "node-1: step 1200 | loss 2.31 | {x} | lr 3.0e-04",
    "  raise RuntimeError(f'could not start: {x}')",
    "pod/train-0 container[trainer]: {x}",
)


def pick(random: Random, alphabet: str, length: int) -> str:
    """Never all letters, so that chance does not make a word; the first sign is a letter."""
    text = "".join(random.choice(alphabet) for _ in range(length))
    return "k7" + text[2:] if alphabet not in (HEX, UPPER, string.digits) else text


def password(random: Random) -> str:
    return pick(random, WORD + "!#%^*_+~.", 14) + random.choice(WORD)


Planted = tuple[str, tuple[str, ...]]
Maker = Callable[[Random], Planted]


def _token(form: str, alphabet: str, length: int) -> Maker:
    """`form` with one token in it; all of the token's random part must vanish."""

    def make(random: Random) -> Planted:
        secret = pick(random, alphabet, length)
        return form.format(s=secret), (secret,)

    return make


def _password(form: str) -> Maker:
    def make(random: Random) -> Planted:
        secret = password(random)
        return form.format(s=secret), (secret,)

    return make


def _basic(random: Random) -> Planted:
    secret = base64.b64encode(f"robot:{pick(random, WORD, 16)}".encode()).decode()
    return f"curl -H 'Authorization: Basic {secret}' https://artifacts.corp.example.net/v2/", (secret,)


def _jwt(random: Random) -> Planted:
    body, signature = pick(random, URLSAFE, 80), pick(random, URLSAFE, 43)
    token = f"eyJhbGciOiJSUzI1NiIsImtpZCI6IiJ9.eyJ{body}.{signature}"
    return f"serviceaccount token {token} expired", (body, signature)


def _pem(random: Random) -> Planted:
    lines = [pick(random, BASE64, 64) for _ in range(3)]
    kind = random.choice(["RSA ", "EC ", "OPENSSH ", "ENCRYPTED ", ""])
    key = "\n".join(lines)
    return f"-----BEGIN {kind}PRIVATE KEY-----\n{key}\n-----END {kind}PRIVATE KEY-----", tuple(lines)


def _service_account(random: Random) -> Planted:
    identity, body = pick(random, HEX, 40), pick(random, BASE64, 64)
    text = (
        f'{{"type": "service_account", "private_key_id": "{identity}", '
        f'"private_key": "-----BEGIN PRIVATE KEY-----\\n{body}\\n-----END PRIVATE KEY-----\\n"}}'
    )
    return text, (identity, body)


def _presigned(random: Random) -> Planted:
    key, signature, token = pick(random, UPPER, 16), pick(random, HEX, 64), pick(random, WORD, 60)
    url = (
        f"https://data.s3.amazonaws.com/x?X-Amz-Credential=AKIA{key}%2F20240501&X-Amz-Security-Token={token}"
        f"&X-Amz-Signature={signature}"
    )
    return f"GET {url} 403", (key, signature, token)


def _kubernetes_secret(random: Random) -> Planted:
    secret = base64.b64encode(pick(random, WORD, 18).encode()).decode()
    return f"kind: Secret data: {{password: {secret}, username: YWRtaW4=}}", (secret.rstrip("="),)


def _docker_config(random: Random) -> Planted:
    secret = base64.b64encode(f"bot:{pick(random, WORD, 20)}".encode()).decode()
    return f'{{"auths": {{"registry.corp.example.net": {{"auth": "{secret}"}}}}}}', (secret.rstrip("="),)


def _ssh_public(random: Random) -> Planted:
    secret = pick(random, BASE64, 120)
    return f"ssh-rsa AAAAB3NzaC1yc2E{secret} alice@laptop", (secret,)


def _cookie(random: Random) -> Planted:
    one, other = pick(random, WORD, 32), pick(random, URLSAFE, 40)
    return f"Set-Cookie: sessionid={one}; _xsrf={other}; Path=/", (one, other)


SECRETS: dict[str, Maker] = {
    "hugging face": _token("huggingface-cli login --token hf_{s}", WORD, 34),
    "hugging face in a url": _token("cloning https://user:hf_{s}@huggingface.co/org/model", WORD, 34),
    "hugging face variable": _token("HF_TOKEN=hf_{s}", WORD, 34),
    "openai": _token("openai.AuthenticationError: Incorrect API key provided: sk-{s}", WORD, 48),
    "openai project": _token("OPENAI_API_KEY=sk-proj-{s}", URLSAFE, 120),
    "anthropic": _token("x-api-key: sk-ant-api03-{s}", URLSAFE, 95),
    "aws key id": _token("botocore: credentials AKIA{s} not valid", UPPER, 16),
    "aws session key id": _token("access key ASIA{s}", UPPER, 16),
    "aws secret": _token("aws_secret_access_key = {s}", BASE64, 40),
    "aws secret variable": _token("export AWS_SECRET_ACCESS_KEY={s}", BASE64, 40),
    "aws configure": _token("aws configure set aws_secret_access_key {s}", BASE64, 40),
    "aws session token": _token('"SessionToken": "{s}"', BASE64, 200),
    "aws presigned url": _presigned,
    "gcp api key": _token("https://maps.googleapis.com/x?key=AIza{s}", URLSAFE, 35),
    "gcp oauth": _token("access token ya29.{s}", URLSAFE, 60),
    "gcp service account": _service_account,
    "azure account key": _token("DefaultEndpointsProtocol=https;AccountName=data;AccountKey={s}==;EndpointSuffix=core", BASE64, 86),
    "azure sas": _token("https://acc.blob.core.windows.net/c/f?sv=2022-11-02&se=2024-06-01&sig={s}%3D", WORD, 43),
    "azure shared access key": _token("Endpoint=sb://q.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey={s}=", BASE64, 43),
    "github": _token("remote: https://ghp_{s}@github.com/org/repo.git", WORD, 36),
    "github oauth": _token("gho_{s} revoked", WORD, 36),
    "github fine-grained": _token("GITHUB_TOKEN: github_pat_{s}", WORD, 82),
    "gitlab": _token("git clone https://oauth2:glpat-{s}@gitlab.corp.example.net/a/b", URLSAFE, 20),
    "gitlab header": _token("PRIVATE-TOKEN: glpat-{s}", URLSAFE, 20),
    "slack bot": _token("slack_sdk: xoxb-123456789012-1234567890123-{s}", WORD, 24),
    "slack webhook": _token("POST https://hooks.slack.com/services/T0AB12CD3/B0AB12CD3/{s}", WORD, 24),
    "weights and biases variable": _token("WANDB_API_KEY={s}", HEX, 40),
    "weights and biases login": _token("wandb login --relogin {s}", HEX, 40),
    "weights and biases json": _token('{{"WANDB_API_KEY": "{s}"}}', HEX, 40),
    "nvidia": _token("NGC key nvapi-{s} refused", URLSAFE, 64),
    "ngc docker login": _token("docker login nvcr.io -u '$oauthtoken' -p {s}", WORD, 84),
    "ngc variable": _token("NGC_CLI_API_KEY={s}", WORD, 84),
    "bearer": _token("Authorization: Bearer {s}", URLSAFE, 40),
    "bearer alone": _token("sent header bearer {s}", URLSAFE, 40),
    "basic": _basic,
    "json web token": _jwt,
    "private key": _pem,
    "ssh public key": _ssh_public,
    "password in a url": _password("redis.exceptions: redis://default:{s}@cache:6379/0"),
    "database dsn": _password("sqlalchemy postgresql+psycopg2://train:{s}@db/metrics"),
    "mongo dsn": _password("pymongo mongodb+srv://app:{s}@cluster0.abcde.mongodb.net/?retryWrites=true"),
    "libpq": _password("connect failed: host=db port=5432 user=train password={s} dbname=metrics"),
    "odbc": _password("Server=db;Database=m;Uid=train;Pwd={s};Encrypt=yes"),
    "password flag": _password("launch.py --user train --password {s} --epochs 3"),
    "password flag joined": _password("launch.py --db-password={s} --epochs 3"),
    "password variable": _password("MYSQL_ROOT_PASSWORD={s}"),
    "password colon": _password("password: {s}"),
    "password json": _password('"password": "{s}"'),
    "password python": _password("connect(user='train', password='{s}')"),
    "password xml": _password("<password>{s}</password>"),
    "numeric password": _token("DB_PASSWORD={s}", string.digits, 12),
    "docker login": _password("docker login -u robot -p {s} registry.corp.example.net"),
    "docker login from a pipe": _password("echo {s} | docker login -u robot --password-stdin registry.corp.example.net"),
    "docker config": _docker_config,
    "kubernetes secret": _kubernetes_secret,
    "kubectl create secret": _password("kubectl create secret generic db --from-literal=password={s}"),
    "kubeconfig": _token("client-key-data: {s}", BASE64, 120),
    "sshpass": _password("sshpass -p {s} ssh train@node-7"),
    "curl login": _password("curl -sS -u robot:{s} https://artifacts.corp.example.net"),
    "mysql": _password("mysql -h db -u train -p{s} metrics"),
    "netrc": _token("machine api.wandb.ai login user password {s}", HEX, 40),
    "cookie": _cookie,
    "jupyter": _token("http://localhost:8888/lab?token={s}", HEX, 48),
    "npm": _token("//registry.corp.example.net/:_authToken=npm_{s}", WORD, 36),
    "pypi": _token("twine upload -u __token__ -p pypi-AgEIcHlwaS5vcmc{s}", URLSAFE, 120),
    "stripe": _token("stripe key sk_live_{s}", WORD, 24),
    "stripe test": _token("rk_test_{s}", WORD, 24),
    "twilio": _token("twilio account AC{s}", HEX, 32),
    "twilio token": _token("TWILIO_AUTH_TOKEN={s}", HEX, 32),
    "sendgrid": _token("SG.abcdefghijklmnop123456.{s}", URLSAFE, 43),
    "docker hub": _token("dckr_pat_{s}", URLSAFE, 27),
    "databricks": _token("DATABRICKS dapi{s}", HEX, 32),
    "vault": _token("VAULT hvs.{s}", URLSAFE, 90),
    "telegram": _token("https://api.telegram.org/bot123456789:AA{s}/sendMessage", URLSAFE, 33),
    "client secret": _token("AZURE_CLIENT_SECRET={s}", WORD + "~", 36),
    "camel case": _token('{{"clientSecret": "{s}"}}', WORD, 32),
    "secret key base": _token("SECRET_KEY_BASE={s}", HEX, 64),
    "google refresh token": _token("refresh 1//0{s}", URLSAFE, 60),
    "alibaba cloud": _token("AccessKeyId LTAI{s}", WORD, 20),
    "okta": _token("Authorization: SSWS {s}", WORD, 42),
    "api key in words": _token("wandb: API key: {s}", HEX, 40),
    "secret key in words": _token("the secret access key is {s}", BASE64, 40),
    "vault header": _token("X-Vault-Token: s.{s}", WORD, 24),
    "short token": _token("DEPLOY_TOKEN={s}", WORD, 10),
    "oracle": _password("jdbc:oracle:thin:train/{s}@//db:1521/metrics"),
    "helm": _password("helm install db --set auth.password={s}"),
    "private key in base64": _token("tls.key: LS0tLS1CRUdJTi{s}", BASE64, 200),
    "replicate": _token("r8_{s}", WORD, 37),
    "groq": _token("gsk_{s}", WORD, 52),
}  # fmt: skip


def planted(seed: int = 20240501) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """Kind, log line and the secrets in it: every kind in every template."""
    random = Random(seed)
    for kind, make in SECRETS.items():
        for template in TEMPLATES:
            fragment, secrets = make(random)
            yield kind, template.replace("{x}", fragment), secrets


def _hex(length: int) -> Callable[[Random], str]:
    return lambda random: pick(random, HEX, length)


def _uuid(random: Random) -> str:
    digits = pick(random, HEX, 32)
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def _number(low: int, high: int) -> Callable[[Random], str]:
    return lambda random: str(random.randint(low, high))


def _mac(random: Random) -> str:
    return ":".join(pick(random, HEX, 2) for _ in range(6))


def _version(random: Random) -> str:
    return f"{random.randint(1, 12)}.{random.randint(0, 30)}.{random.randint(0, 9)}.{random.randint(0, 99)}"


# A line and what goes into its places; none of it may change.
LOOK_ALIKES: tuple[tuple[str, tuple[Callable[[Random], str], ...]], ...] = (
    ("commit {0}", (_hex(40),)),
    ("HEAD is now at {0} Fix the sampler", (_hex(7),)),
    ("git+https://github.com/org/repo@{0}#egg=x", (_hex(40),)),
    ("torch.version.git_version {0}", (_hex(40),)),
    ("sha256:{0}", (_hex(64),)),
    ("nvcr.io/nvidia/pytorch@sha256:{0}", (_hex(64),)),
    ("md5 {0}  model-00001-of-00008.safetensors", (_hex(32),)),
    ("--hash=sha256:{0}", (_hex(64),)),
    ("GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-{0})", (_uuid,)),
    ("MIG 1g.10gb Device 0: (UUID: MIG-{0})", (_uuid,)),
    ("CUDA_VISIBLE_DEVICES=GPU-{0}", (_uuid,)),
    ("ncclCommInitRank comm 0x{0} rank 3 nranks 8 cudaDev 3 nvmlDev 3 busId {1} commId 0x{2} - Init COMPLETE", (_hex(12), _hex(5), _hex(16))),
    ("NCCL INFO comm 0x{0} rank 0 nRanks 8 nNodes 1 localRanks 8", (_hex(12),)),
    ("PG GUID {0} PG Name default_pg, seq 12", (_hex(16),)),
    ("NVRM: Xid (PCI:0000:{0}:00): 79, pid={1}, GPU has fallen off the bus.", (_hex(2), _number(1000, 99999))),
    ("00000000:{0}:00.0 Off", (_hex(2),)),
    ("frame #3: c10d::ProcessGroupNCCL::ncclCommWatchdog() + 0x{0} (0x7f{1} in libtorch_cuda.so)", (_hex(3), _hex(10))),
    ("RIP: 0033:0x7f{0} RSP: 002b:00007ffd{1}", (_hex(10), _hex(8))),
    ("device address {0} on eth0", (_mac,)),
    ("mlx5_0 port GUID 0x{0} LID {1}", (_hex(16), _number(1, 60000))),
    ("node guid {0}:{1}:{2}:{3}", (_hex(4), _hex(4), _hex(4), _hex(4))),
    ("Requirement already satisfied: nvidia-cudnn-cu12=={0}", (_version,)),
    ("nvidia-cublas-cu12        {0}", (_version,)),
    ("Downloading nvidia_cublas_cu12-{0}-py3-none-manylinux2014_x86_64.whl (410.6 MB)", (_version,)),
    ("cuDNN version {0}", (_version,)),
    ("tensorrt {0} loaded, NCCL version 2.18.3+cuda12.2", (_version,)),
    ("libcudnn.so.{0} not found", (_version,)),
    ("MLNX_OFED_LINUX-5.8-{0} (OFED-5.8-1.1.2)", (_version,)),
    ("NVIDIA-SMI 550.54.15   Driver Version: 550.54.15   CUDA Version: 12.{0}", (_number(0, 9),)),
    ("torch 2.5.{0}+cu124 torchvision 0.20.{0} python 3.11.{0}", (_number(0, 9),)),
    ("torch-2.6.0.dev2024{0}+cu126-cp311-cp311-linux_x86_64.whl", (_number(1000, 1231),)),
    ("seed={0} torch.manual_seed({0})", (_number(0, 2**32),)),
    ("step {0}/100000 | loss 2.{1} | tokens per second: {2}", (_number(1, 99999), _number(0, 9999), _number(1, 10**7))),
    ("max_tokens={0} num_tokens: {1} pad_token_id={2} eos_token='</s>'", (_number(1, 9999), _number(1, 10**9), _number(0, 128255))),
    ("WorkNCCL(SeqNum={0}, OpType=ALLREDUCE, NumelIn={1}, NumelOut={1}, Timeout(ms)=600000)", (_number(1, 10**6), _number(1, 10**9))),
    ("2024-05-01T12:{0}:{1}.123456+00:00 started", (_number(10, 59), _number(10, 59))),
    ("[2024-05-01 12:{0}:{1},123] [INFO] [launch.py:35:main] ok", (_number(10, 59), _number(10, 59))),
    ("E0501 12:{0}:{1}.044000 {2} torch/distributed/elastic/multiprocessing/api.py:1002] failed", (_number(10, 59), _number(10, 59), _number(1000, 99999))),
    ("time={0}.{1} epoch", (_number(10**9, 2 * 10**9), _number(0, 999))),
    ("run id {0}", (_uuid,)),
    ("wandb: Syncing run dazzling-sun-{0}", (_number(1, 999),)),
    ("Submitted batch job {0}", (_number(10**5, 10**8),)),
    ("nvidia-smi: 0000:{0}:00.0, 81559 MiB, 550.54.15", (_hex(2),)),
    ("Segfault at {0} ip 00007f{1} sp 00007ffd{2} error 4 in libcuda.so.550.54.15", (_hex(2), _hex(8), _hex(8))),
    ("_ZN4c10d16ProcessGroupNCCL8WorkNCCL{0}E", (_number(10, 99),)),
    ("Tried to allocate {0}.50 GiB. GPU {1} has a total capacity of 79.11 GiB", (_number(1, 70), _number(0, 7))),
    ("torch.Size([{0}, {1}, 4096])", (_number(1, 99), _number(1, 9999))),
    ("events.out.tfevents.{0}.trainer.{1}.0", (_number(10**9, 2 * 10**9), _number(1, 9999))),
    ("KeyError: 'api_key' at index {0}; secret: not set; password: required; token: missing", (_number(1, 99),)),
    ("listening on 0.0.0.0:{0} and 127.0.0.1:{1} (localhost)", (_number(1024, 65535), _number(1024, 65535))),
    ("torch.distributed.elastic.multiprocessing.errors std::chrono::duration c10::Error at::native {0}", (_number(1, 99),)),
    ("layer.{0}.self_attn.q_proj.weight model.layers.{0}.mlp.net block.{0}.se", (_number(0, 99),)),
    ("secret_name=db-credentials tokenizer=/models/llama key=value signature: (Tensor a, int {0})", (_number(0, 9),)),
    ("loaded token file /run/secrets/token{0} from TOKEN_FILE=/run/secrets/token{0}", (_number(0, 9),)),
    ("password=$DB_PASSWORD token=<token> api_key=${{KEY}} secret=**** attempt {0}", (_number(0, 9),)),
)  # fmt: skip


def look_alikes(each: int = 20, seed: int = 7) -> Iterator[str]:
    """`each` lines of every kind."""
    random = Random(seed)
    for line, makers in LOOK_ALIKES:
        for _ in range(each):
            yield line.format(*(make(random) for make in makers))
