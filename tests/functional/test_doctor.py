"""``joinery doctor`` over a site that is in order; what it prints, and the bill."""

from typing import Any

import pytest

from joinery import __version__
from joinery.gateways.aws import error as aws_error
from joinery.gateways.ec2.catalog.reservations import CapacityReservation
from joinery.gateways.workers import OneByOne, Threads
from joinery.objects.errors import NotFoundError, UnavailableError
from joinery_cli.doctor.command import checks
from joinery_cli.doctor.cost import bill, total
from joinery_cli.doctor.findings import Check, CheckStatus, Finding, examine, exit_status, ok
from joinery_cli.doctor.output import document, print_findings
from joinery_cli.doctor.site import Site
from joinery_cli.doctor.usage import measured, nodes
from tests.functional.doctored import (
    FakeApi,
    FakeAws,
    FakeWeb,
    bucket,
    described,
    diagnosed,
    node_class,
    node_pool,
    site,
    wrong,
)

Answer = Any


def test_an_installation_in_order_has_nothing_but_good_lines() -> None:
    """Each check says what it looked at."""
    findings = diagnosed(site())
    assert wrong(findings) == set()
    assert {check.topic for check in checks()} - {one.topic for one in findings} == {
        "karpenter",
        "member",
        "vpc",
        "runs",
        "commitments",
    }
    assert exit_status(findings) == 0


@pytest.mark.parametrize(("status", "words"), [(403, "token"), (500, "500")])
def test_a_webhook_that_does_not_answer_is_told(status: int, words: str) -> None:
    """With its URL and token out of the cluster's webhook configuration; the token itself is never printed."""
    findings = diagnosed(site(web=FakeWeb(status)))
    (told,) = [one for one in findings if one.status is CheckStatus.FAIL]
    assert (told.topic, words in told.text) == ("webhook", True)
    assert "secret" not in str(findings)


def test_where_nothing_is_installed_one_line_says_so() -> None:
    """What needs the stack is silent; what does not is looked at all the same."""
    gone = aws_error("ValidationError", "Stack joinery-blue does not exist", doing="cloudformation describe_stacks")

    def stacks(**asked: str) -> dict[str, Any]:
        if asked:
            raise gone
        return {"Stacks": []}

    findings = diagnosed(site(FakeAws(describe_stacks=stacks)))
    assert wrong(findings) == {("stack", CheckStatus.FAIL)}
    assert ("api server", CheckStatus.OK) in {(one.topic, one.status) for one in findings}


class Unauthorized(FakeApi):
    """An API server that does not know who asks."""

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, dict[str, Any]]:
        return 401, {"message": "Unauthorized"}


@pytest.mark.parametrize("api", [FakeApi(**{"/version": UnavailableError("timed out")}), Unauthorized()])
def test_an_api_server_out_of_reach_is_one_line(api: FakeApi) -> None:
    """Not one a check: an endpoint is private, or a person has no access entry, and each remedy would be wrong."""
    findings = diagnosed(site(api=api))
    assert wrong(findings) == {("api server", CheckStatus.FAIL)}
    (line,) = (one for one in findings if one.topic == "api server")
    assert "aws eks update-kubeconfig --name blue --region us-east-1" in line.remedy
    assert ("dead letters", CheckStatus.OK) in {(one.topic, one.status) for one in findings}


def test_objects_without_a_status_are_in_order_while_joinery_observes() -> None:
    """It writes no status then, so nothing can be said of what a NodePool or EC2NodeClass selects."""
    pool, group = {**node_pool(), "status": {}}, {**node_class(), "status": {}}
    api = FakeApi(**{
        "/apis/karpenter.sh/v1/nodepools": {"items": [pool]},
        "/apis/karpenter.k8s.aws/v1/ec2nodeclasses": {"items": [group]},
    })  # fmt: skip
    assert wrong(diagnosed(site(FakeAws(describe_stacks=described(Mode="observe")), api))) == {
        ("settings", CheckStatus.WARN)
    }
    assert wrong(diagnosed(site(api=api))) == {("nodepools", CheckStatus.FAIL), ("network", CheckStatus.FAIL)}


@pytest.mark.parametrize("status", ["True", "False"])
def test_what_is_ready_while_joinery_observes_is_so_for_karpenter(status: str) -> None:
    """Joinery writes no status then, and its own plans may say otherwise."""
    ready = {"conditions": [{"type": "Ready", "status": status, "message": "no role"}]}
    api = FakeApi(**{"/apis/karpenter.sh/v1/nodepools": {"items": [{**node_pool(), "status": ready}]}})
    found = diagnosed(site(FakeAws(describe_stacks=described(Mode="observe")), api))
    (line,) = [one.text for one in found if one.topic == "nodepools"]
    assert "says Karpenter: Joinery observes" in line
    (own,) = [one.text for one in diagnosed(site(api=api)) if one.topic == "nodepools"]
    assert "Karpenter" not in own


def test_a_reservation_that_nobody_selects_is_a_hint() -> None:
    """EC2 uses an open one for whatever matches, without a word (EC2 User Guide, "On-Demand Capacity Reservations")."""
    taken, free, named = (
        CapacityReservation(
            capacity_reservation_id=name, instance_type="m5.large", availability_zone="us-east-1a",
            instance_match_criteria=criteria,
        )
        for name, criteria in (("cr-taken", "open"), ("cr-free", "open"), ("cr-named", "targeted"))
    )  # fmt: skip
    selecting = node_class()
    selecting["status"] = {**selecting["status"], "capacityReservations": [{"id": "cr-taken"}]}
    api = FakeApi(**{"/apis/karpenter.k8s.aws/v1/ec2nodeclasses": {"items": [selecting]}})
    aws = FakeAws(get_object=bucket(capacity_reservations=(taken, free, named)))
    hints = [one.text for one in diagnosed(site(aws, api)) if one.status == CheckStatus.NOTE and "cr-" in one.text]
    assert len(hints) == 1
    assert "cr-free (m5.large in us-east-1a)" in hints[0]


def test_one_mistake_of_ours_is_one_line() -> None:
    """A check that raises keeps no other from being made, side by side or not."""

    def broken(_: Site) -> list[Finding]:
        raise KeyError("a bug")

    checks = (Check("a", broken), Check("b", lambda _: [ok("b", "fine")]))
    for workers in (OneByOne(), Threads(2)):
        findings = examine(checks, site(), workers)
        assert [(one.topic, one.status) for one in findings] == [("a", CheckStatus.WARN), ("b", CheckStatus.OK)]


def test_what_is_printed_steers_no_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """Names are of others. Without a terminal there are no colours."""
    print_findings(site(), [Finding("stack", CheckStatus.FAIL, "named \x1b[31m[bold]red[/bold]", "mend it")])
    printed = capsys.readouterr().out
    assert "\x1b" not in printed
    assert "[bold]red[/bold]" in printed
    assert "→ mend it" in printed


def test_the_document_says_the_worst_and_everything(capsys: pytest.CaptureFixture[str]) -> None:
    """For programs: the same findings, and the bill if it was asked for."""
    findings = diagnosed(site(FakeAws(get_schedule={"State": "DISABLED"})))
    told = document(site(), findings, tuple(bill(measured(site()))))
    assert (told["status"], told["cluster"], told["version"]) == ("fail", "blue", __version__)
    assert len(told["findings"]) == len(findings)
    assert told["monthly"]["dollars"] > 0


def test_the_bill_is_of_what_was_used() -> None:
    """A week's invocations, as if they went on for a month, and an alarm's metrics one by one."""
    usage = measured(site())
    assert usage.functions["provisioning"].invocations == pytest.approx(700 * 730 / 168)
    assert (usage.series, usage.dashboards, usage.alarm_metrics) == (2, 1, 1)
    assert total(tuple(bill(usage))) == pytest.approx(sum(item.dollars for item in bill(usage)))


def test_the_bill_is_for_nodes_of_joinery_s() -> None:
    """EKS Auto Mode keeps its NodeClaims under the same definition, and has a price of its own."""
    claims = [
        {"metadata": {"name": name}, "spec": {"nodeClassRef": {"group": group, "name": "default"}}}
        for name, group in (("ours", "karpenter.k8s.aws"), ("theirs", "eks.amazonaws.com"))
    ]
    assert nodes(site(api=FakeApi(**{"/apis/karpenter.sh/v1/nodeclaims": {"items": claims}}))) == 1


@pytest.mark.parametrize(
    ("answer", "operation"),
    [(NotFoundError("none"), "create"), ({"accessEntry": {"kubernetesGroups": ["joinery"]}}, "update")],
)
def test_the_remedy_of_an_access_entry_is_its_command(answer: Answer, operation: str) -> None:
    """To deploy again would change nothing: CloudFormation does not look at what it has made."""
    told = diagnosed(site(FakeAws(describe_access_entry=answer)))

    remedy = next(finding.remedy for finding in told if finding.topic == "access" and "Lifecycle" in finding.text)
    assert remedy == (
        f"aws eks {operation}-access-entry --cluster-name blue --principal-arn arn:role "
        "--kubernetes-groups joinery joinery-lifecycle"
    )


def test_only_rights_that_the_stack_asks_for_are_looked_for() -> None:
    """Without steering nobody needs to patch pods, and the installer grants it to nobody."""
    asked: list[tuple[str, str]] = []

    def review(attributes: dict[str, str]) -> bool:
        asked.append((attributes["verb"], attributes["resource"]))
        return True

    off = FakeAws(describe_stacks=described(Steering="off", PodDeletionCost="false"))
    assert wrong(diagnosed(site(off, FakeApi(review=review)))) == set()
    assert ("patch", "pods") not in asked
    diagnosed(site(api=FakeApi(review=review)))
    assert ("patch", "pods") in asked


@pytest.mark.parametrize(
    ("own", "main", "status"),
    [("nat-1", "", CheckStatus.NOTE), ("", "nat-1", CheckStatus.FAIL), ("none", "nat-1", CheckStatus.NOTE)],
)
def test_a_subnet_leaves_by_its_own_routes_else_by_the_vpc_s(own: str, main: str, status: CheckStatus) -> None:
    """A NAT gateway that another subnet uses is of no help."""

    def tables(**asked: Any) -> dict[str, Any]:
        is_own = asked["Filters"][0]["Name"] == "association.subnet-id"
        gateway = own if is_own else main
        if gateway == "none":
            return {"RouteTables": []}
        return {"RouteTables": [{"Routes": [{"NatGatewayId": gateway} if gateway else {"GatewayId": "local"}]}]}

    aws = FakeAws(
        describe_stacks=described(SubnetIds="subnet-1"),
        describe_vpc_endpoints={"VpcEndpoints": []},
        describe_route_tables=tables,
    )
    assert {one.status for one in diagnosed(site(aws)) if one.topic == "vpc"} == {status}


@pytest.mark.parametrize("text", ["Webhok=none; WebhookEndpoint=private", "MaxLaunches=many", "x" * 4000])
def test_settings_that_are_not_valid_are_a_finding(text: str) -> None:
    """A release may no longer take what an older one took. What else there is to find is found all the same."""
    findings = diagnosed(site(FakeAws(describe_stacks=described(Settings=text))))
    assert wrong(findings) == {("settings", CheckStatus.FAIL)}
    (finding,) = [one for one in findings if one.status is CheckStatus.FAIL]
    assert finding.remedy
    assert {one.topic for one in findings} == {one.topic for one in diagnosed(site())}


def test_what_is_left_of_commitments_is_said() -> None:
    """Where the stack counts them."""
    document = (
        b'{"read": "2026-08-24T08:00:00Z", "savingsPlans": [{"name": "sp", "commitment": 5, "usedElsewhere": 1.5}],'
        b' "reservedInstances": [{"name": "ri", "instanceType": "m7a.large", "count": 3}]}'
    )
    answers: Any = {
        "describe_stacks": described(Commitments="60%"),
        "get_object": bucket(document),
    }
    (found,) = (one for one in diagnosed(site(FakeAws(**answers))) if one.topic == "commitments")
    assert found.status is CheckStatus.OK
    assert found.text.startswith("others leave 3.5 $/h of Savings Plans and 3 Reserved Instances, read ")
    assert not [one for one in diagnosed(site()) if one.topic == "commitments"]
