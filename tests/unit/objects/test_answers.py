"""A process keeps answers as long as there is room."""

from joinery.objects.answers import Answers


def test_what_was_asked_for_last_stays() -> None:
    """What nobody asks for any more goes first."""
    answers = Answers(most=3)
    for question in "abc":
        answers.keep(question, question.upper(), 1)
    assert answers.find("a") == "A"
    answers.keep("d", "D", 2)
    assert [answers.find(question) for question in "abcd"] == ["A", None, None, "D"]


def test_an_answer_without_room_is_not_kept() -> None:
    """It costs no other its place."""
    answers = Answers(most=3)
    answers.keep("small", "S", 3)
    answers.keep("large", "L", 4)
    assert [answers.find("small"), answers.find("large")] == ["S", None]


def test_an_answer_that_is_kept_again_counts_once() -> None:
    """Two threads may have found it."""
    answers = Answers(most=3)
    for _ in range(5):
        answers.keep("a", "A", 2)
    assert answers.find("a") == "A"
