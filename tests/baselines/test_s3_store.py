"""What only a store in a bucket can meet: its endpoint, its credentials, lost answers. test_stores.py has the rest."""

import secrets
import subprocess
import sys

import pytest
from faulty_proxy import CUT_BODY, LOSE_ANSWER, STALL, Answer, faulty_proxy, s3_error
from s3_servers import BUCKET, SECRET_KEY, Endpoint, free_ports, rclone

from baselines.errors import BaselineError
from baselines.store import open_store, update
from baselines.store import s3 as s3_module


@pytest.fixture
def location() -> str:
    return f"s3://{BUCKET}/{secrets.token_hex(8)}"


@pytest.fixture
def proxy(moto_endpoint, monkeypatch):
    """Requests go to moto through a proxy that fails as it is told."""
    with faulty_proxy(moto_endpoint.url) as proxy:
        Endpoint(proxy.url).use(monkeypatch)
        yield proxy


@pytest.fixture
def store(proxy, location):
    """A store behind the proxy that has found out that its endpoint keeps preconditions."""
    store = open_store(location)
    store.create("first", b"")
    return store


def fail(proxy, *faults, method="PUT"):
    proxy.faults[:] = faults
    proxy.concerns = lambda request: request.startswith(method)


def test_a_store_needs_no_prefix_and_ignores_a_slash_at_its_end(moto_endpoint, monkeypatch):
    moto_endpoint.use(monkeypatch)
    name = secrets.token_hex(8)
    open_store(f"s3://{BUCKET}/{name}/").create("a/b", b"1")
    assert open_store(f"s3://{BUCKET}").read(f"{name}/a/b") == b"1"
    assert open_store(f"s3://{BUCKET}").location == f"s3://{BUCKET}"
    assert open_store(f"s3://{BUCKET}/{name}", must_exist=True).list("") == ["a/b"]


def test_prefixes_do_not_see_each_other_nor_what_others_keep_under_names_that_are_no_keys(
    moto_endpoint, monkeypatch, location
):
    moto_endpoint.use(monkeypatch)
    one, other = open_store(location), open_store(f"{location}-other")
    one.create("a", b"1")
    other.create("b", b"2")
    moto_endpoint.client().put_object(Bucket=BUCKET, Key=f"{location.rpartition('/')[2]}/no key", Body=b"")
    assert (one.list(""), other.list("")) == (["a"], ["b"])


def test_a_list_goes_on_after_its_first_page(moto_endpoint, monkeypatch, location):
    monkeypatch.setattr(s3_module, "_PAGE", 4)
    moto_endpoint.use(monkeypatch)
    client, prefix = moto_endpoint.client(), location.removeprefix(f"s3://{BUCKET}/")
    for number in range(13):
        client.put_object(Bucket=BUCKET, Key=f"{prefix}/runs/{number:04}", Body=b"")
    assert open_store(location).list("runs/") == [f"runs/{number:04}" for number in range(13)]


def test_an_endpoint_that_ignores_preconditions_is_refused_before_anything_is_written(tmp_path, monkeypatch, location):
    with rclone(tmp_path) as endpoint:
        endpoint.use(monkeypatch)
        store = open_store(location)
        for write in (lambda: store.create("a", b"1"), lambda: store.write_if("b", b"1", None)):
            with pytest.raises(BaselineError, match="ignores If-None-Match") as refused:
                write()
            assert location in str(refused.value)
        assert store.list("") == []


def test_an_endpoint_that_knows_only_one_of_the_conditions_is_refused_too(proxy, location):
    fail(proxy, Answer(200, headers={"ETag": '"1"'}), s3_error(412, "PreconditionFailed"), Answer(200))
    with pytest.raises(BaselineError, match="ignores If-Match"):
        open_store(location).create("a", b"1")


def test_an_object_whose_answer_was_lost_is_stored_once_and_is_no_error(proxy, store):
    fail(proxy, LOSE_ANSWER)
    store.create("a", b"1")
    fail(proxy, LOSE_ANSWER)
    assert store.write_if("b", b"nonce 1", None)
    version = store.read_versioned("b").version
    fail(proxy, LOSE_ANSWER)
    assert store.write_if("b", b"nonce 2", version)
    assert not proxy.faults
    assert (store.read("a"), store.read("b")) == (b"1", b"nonce 2")
    with pytest.raises(BaselineError, match="immutable"):
        store.create("a", b"2")


def test_a_write_whose_answer_was_lost_is_known_although_others_have_written_over_it(proxy, store, monkeypatch):
    assert store.write_if("a", b"0", None)
    version = store.read_versioned("a").version
    other = open_store(store.location)

    def others_write():
        for number in range(3):
            assert other.write_if("a", f"other {number}".encode(), other.read_versioned("a").version)

    conditional = store._conditional

    def lost(*arguments):
        assert conditional(*arguments)
        others_write()
        return conditional(*arguments)  # what boto3 does when no answer comes

    monkeypatch.setattr(store, "_conditional", lost)
    assert store.write_if("a", b"1", version), "it was written, and then written over"
    assert store.read("a") == b"other 2"


def test_the_same_bytes_from_two_writers_are_two_writes(proxy, store):
    other = open_store(store.location)
    assert store.write_if("a", b"0", None)
    version = store.read_versioned("a").version
    assert store.write_if("a", b"1", version)
    assert not other.write_if("a", b"1", version)


def test_a_conflict_is_tried_again_and_a_lost_race_is_told(proxy, store):
    fail(proxy, s3_error(409, "ConditionalRequestConflict"), s3_error(409, "ConditionalRequestConflict"))
    assert store.write_if("a", b"1", None)
    assert not proxy.faults
    version = store.read_versioned("a").version
    fail(proxy, s3_error(404, "NoSuchKey"))
    assert not store.write_if("a", b"2", version), "what was there has been removed: AWS answers 404, others 412"
    fail(proxy, *[s3_error(409, "ConditionalRequestConflict")] * 100)
    s3_module.time.sleep, sleep = (lambda _: None), s3_module.time.sleep
    try:
        with pytest.raises(BaselineError, match="conflicts in a row; try again later"):
            store.write_if("a", b"3", version)
    finally:
        s3_module.time.sleep = sleep
    fail(proxy)
    assert store.read("a") == b"1"


def test_an_update_counts_once_although_answers_are_lost_and_the_endpoint_throttles(proxy, store):
    for _ in range(5):
        fail(proxy, s3_error(503, "SlowDown"), LOSE_ANSWER)
        update(store, "counter", lambda content: str(int(content or b"0") + 1).encode())
        assert not proxy.faults
    assert store.read("counter") == b"5"


def test_a_body_that_is_cut_short_is_read_again_and_never_taken_for_the_whole(proxy, store):
    store.create("a", bytes(range(256)) * 1000)
    fail(proxy, CUT_BODY, method="GET")
    assert len(store.read("a")) == 256_000
    fail(proxy, *[CUT_BODY] * 50, method="GET")
    with pytest.raises(BaselineError, match=r"nightly|s3://"):
        store.read("a")


def test_an_upload_that_fails_to_the_end_leaves_nothing_and_can_be_made_again(store, proxy):
    fail(proxy, *[s3_error(500, "InternalError")] * 50)
    with pytest.raises(BaselineError, match="InternalError"):
        store.create("a", b"1" * 100_000)
    fail(proxy)
    assert store.read_if_present("a") is None
    store.create("a", b"1" * 100_000)


def test_a_file_is_sent_again_from_its_beginning_and_read_again_when_it_comes_short(proxy, store, tmp_path):
    path, back = tmp_path / "a.whl", tmp_path / "b.whl"
    path.write_bytes(bytes(range(256)) * 10_000)
    fail(proxy, s3_error(409, "ConditionalRequestConflict"), s3_error(503, "SlowDown"), LOSE_ANSWER)
    assert store.create_from_file("a", path), "its answer was lost, and it is its own"
    assert not proxy.faults
    fail(proxy, CUT_BODY, method="GET")
    assert store.read_to_file("a", back) and back.read_bytes() == path.read_bytes()
    back.unlink()
    fail(proxy, *[CUT_BODY] * 50, method="GET")
    with pytest.raises(BaselineError, match="s3://"):
        store.read_to_file("a", back)
    assert [one.name for one in tmp_path.iterdir()] == ["a.whl"]


def test_a_file_that_is_there_is_not_sent_and_one_beyond_a_request_is_refused(proxy, store, tmp_path, monkeypatch):
    path = tmp_path / "a.whl"
    path.write_bytes(b"wheel")
    store.create("a", b"wheel")
    fail(proxy, s3_error(500, "InternalError"))
    assert not store.create_from_file("a", path) and proxy.faults
    fail(proxy)
    monkeypatch.setattr(s3_module, "_LARGEST", 4)
    with pytest.raises(BaselineError, match=r"a\.whl is larger than"):
        store.create_from_file("b", path)


def test_an_endpoint_that_is_silent_is_given_up_with_its_name(proxy, location, monkeypatch):
    monkeypatch.setattr(s3_module, "_READ_TIMEOUT_S", 0.2)
    monkeypatch.setattr(s3_module, "_ATTEMPTS", 2)
    fail(proxy, *[STALL] * 50, method="")
    with pytest.raises(BaselineError, match=r"no answer after 2 attempts \(Read timeout on endpoint URL"):
        open_store(location).read("a")


def test_an_endpoint_that_is_not_there_is_told(monkeypatch, location):
    (port,) = free_ports(1)
    Endpoint(f"http://127.0.0.1:{port}").use(monkeypatch)
    monkeypatch.setattr(s3_module, "_ATTEMPTS", 2)
    with pytest.raises(BaselineError, match=r"no answer after 2 attempts \(Could not connect"):
        open_store(location).list("runs/")


@pytest.mark.parametrize(
    ("code", "status", "message"),
    [
        ("ExpiredToken", 400, "expired; assume the role again"),
        ("RequestExpired", 400, "expired; assume the role again"),
        ("AccessDenied", 403, "the role needs s3:GetObject"),
        ("PermanentRedirect", 301, "another region; set AWS_REGION"),
        ("RequestTimeTooSkewed", 403, "clock is wrong"),
        ("SomethingNew", 400, "told by the test"),
    ],
)
def test_a_refusal_says_what_to_do_and_writes_nothing(proxy, store, code, status, message):
    fail(proxy, *[s3_error(status, code)] * 10)
    with pytest.raises(BaselineError, match=message) as refused:
        store.create("runs/a", b"1")
    assert "runs/a" in str(refused.value)
    assert len(str(refused.value).splitlines()) == 1
    fail(proxy)
    assert store.read_if_present("runs/a") is None


def test_a_token_that_expires_between_two_writes_loses_neither(proxy, store):
    store.create("runs/1", b"1")
    fail(proxy, *[s3_error(400, "ExpiredToken")] * 10)
    with pytest.raises(BaselineError, match="what was stored stays"):
        store.create("runs/2", b"2")
    fail(proxy)
    again = open_store(store.location)  # the next start, with a new token
    again.create("runs/1", b"1")
    again.create("runs/2", b"2")
    assert again.list("runs/") == ["runs/1", "runs/2"]


@pytest.mark.parametrize(
    "address",
    [
        "http://someone:pass-word@127.0.0.1:1",
        "http://pass-word@127.0.0.1:1",
        "http://u:pass-word@no host",
        "u:pass-word@x",
    ],
)
def test_a_password_in_the_address_of_the_endpoint_is_refused_and_never_shown(monkeypatch, location, address):
    Endpoint(address).use(monkeypatch)
    with pytest.raises(BaselineError) as refused:
        open_store(location).create("a", b"")
    assert "pass-word" not in str(refused.value)


def test_wrong_keys_are_told_by_a_server_that_looks_at_them(seaweedfs_endpoint, monkeypatch, location):
    seaweedfs_endpoint.use(monkeypatch)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "another-secret")
    with pytest.raises(BaselineError, match="secret key is wrong") as refused:
        open_store(location).create("a", b"1")
    assert "another-secret" not in str(refused.value)
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET_KEY)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDUNKNOWN")
    with pytest.raises(BaselineError, match="access key is not known"):
        open_store(location).create("a", b"1")
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    with pytest.raises(BaselineError, match="no AWS credentials are set"):
        open_store(location).create("a", b"1")


@pytest.mark.parametrize("kind", ["moto", "seaweedfs"])
def test_a_missing_bucket_and_an_empty_prefix_are_told(kind, request, monkeypatch):
    request.getfixturevalue(f"{kind}_endpoint").use(monkeypatch)
    store = open_store("s3://no-such-bucket/nightly")
    for access in (lambda: store.create("a", b""), lambda: store.read("a"), lambda: store.list("")):
        with pytest.raises(BaselineError, match="no such bucket; create it"):
            access()
    with pytest.raises(BaselineError, match="nothing is stored there; check the prefix"):
        open_store(f"s3://{BUCKET}/{secrets.token_hex(8)}", must_exist=True)


def test_without_boto3_the_extra_is_named():
    code = (
        "import sys; sys.modules['boto3'] = None\n"
        "from baselines.store import open_store\n"
        "try:\n    open_store('s3://bucket/prefix')\nexcept Exception as error:\n    print(error)"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "pip install 'torchbench-sentinel[bot]'" in told
