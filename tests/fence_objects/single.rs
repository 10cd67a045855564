//! Single cases, one answer each.

use leasehold::fence::{FenceError, raise, verify};
use leasehold::protocol::broken::switch::Guard;
use leasehold::{FencingToken, Written};

use super::object::{Fate, Flaw, NoAnswer, Object};
use super::walk::{now, now_with};

fn token(number: u64) -> FencingToken {
    FencingToken::new(number).unwrap()
}

fn answered_then(fates: &[Fate]) -> impl Iterator<Item = Fate> {
    fates.iter().copied().chain([Fate::Answered].into_iter().cycle())
}

#[test]
fn a_replaced_holder_is_told_both_tokens_at_its_write_and_at_its_next_raise() {
    let _whole = Guard::nothing_broken();
    let object = Object::default();
    let mut old = now(&object, raise(&object, token(7))).unwrap();
    now(&object, raise(&object, token(9))).unwrap();
    for error in [
        now(&object, old.write("late")).unwrap_err(),
        now(&object, old.check()).unwrap_err(),
        now(&object, raise(&object, token(7))).map(drop).unwrap_err(),
    ] {
        let stale = error.stale().expect("stale");
        assert_eq!((stale.token, stale.highest, error.written()), (token(7), token(9), Written::No));
    }
    assert_eq!(object.content(), "");
}

#[test]
fn a_write_is_one_request_and_a_raise_is_two() {
    let _whole = Guard::nothing_broken();
    let object = Object::default();
    let mut fates = [Fate::Answered; 4].into_iter();
    let mut raised = now_with(&object, &mut fates, raise(&object, token(7))).unwrap().unwrap();
    assert_eq!(fates.len(), 2);
    now_with(&object, &mut fates, raised.write("one")).unwrap().unwrap();
    now_with(&object, &mut fates, raised.write("two")).unwrap().unwrap();
    assert_eq!((fates.len(), object.content().as_str()), (0, "two"));
}

#[test]
fn a_fence_that_was_set_by_hand_is_kept() {
    let _whole = Guard::nothing_broken();
    let object = Object::default();
    object.set(Some("9"), "state");
    let stale = now(&object, raise(&object, token(8))).map(drop).unwrap_err().stale().expect("stale");
    assert_eq!(stale.highest, token(9));
    let raised = now(&object, raise(&object, token(9))).unwrap();
    assert_eq!((raised.found().as_str(), raised.found_is_of()), ("state", None));
}

#[test]
fn what_is_no_fence_is_neither_free_nor_written_over() {
    let _whole = Guard::nothing_broken();
    for text in ["", "eight", "-1", "9007199254740992"] {
        let object = Object::default();
        object.set(Some(text), "state");
        let error = now(&object, raise(&object, token(8))).map(drop).unwrap_err();
        assert!(matches!(&error, FenceError::NotAFence { found, .. } if found == text), "{error}");
        assert_eq!(object.log().len(), 0);
    }
}

#[test]
fn an_object_from_before_there_was_a_fence_keeps_its_content_when_it_is_raised() {
    let _whole = Guard::nothing_broken();
    let object = Object::default();
    object.set(None, "state");
    let raised = now(&object, raise(&object, token(1))).unwrap();
    assert_eq!((raised.found().as_str(), raised.found_is_of()), ("state", None));
    assert_eq!(object.content(), "state");
}

#[test]
fn a_write_past_the_fence_or_a_deletion_ends_the_raise() {
    let _whole = Guard::nothing_broken();
    let edits: [fn(&Object); 3] =
        [|object| object.delete(), |object| object.set(None, "edited"), |object| object.set(Some("7"), "edited")];
    for edit in edits {
        let object = Object::default();
        let mut raised = now(&object, raise(&object, token(7))).unwrap();
        edit(&object);
        let error = now(&object, raised.write("late")).unwrap_err();
        assert!(matches!(error, FenceError::Overtaken { in_doubt: None, .. }), "{error}");
    }
}

#[test]
fn a_write_whose_future_was_dropped_after_it_was_stored_is_followed_by_the_next() {
    let _whole = Guard::nothing_broken();
    let object = Object::default();
    let mut raised = now(&object, raise(&object, token(7))).unwrap();
    // The answer is lost, and the look that would follow never comes.
    let dropped = now_with(&object, &mut [Fate::AnswerLost].into_iter(), raised.write("one"));
    assert!(dropped.is_none(), "{dropped:?}");
    assert_eq!(object.content(), "one");
    now(&object, raised.write("two")).unwrap();
    assert_eq!(object.content(), "two");
}

#[test]
fn a_lost_answer_of_a_stored_write_is_ok_after_one_look() {
    let _whole = Guard::nothing_broken();
    for fate in [Fate::AnswerLost, Fate::Repeated] {
        let object = Object::default();
        let mut raised = now(&object, raise(&object, token(7))).unwrap();
        now_with(&object, &mut [fate, Fate::Answered].into_iter(), raised.write("one")).unwrap().unwrap();
        assert_eq!(object.log().iter().filter(|write| write.after == "one").count(), 1);
    }
}

#[test]
fn a_write_that_may_be_on_its_way_is_in_doubt_until_a_raise_tells() {
    let _whole = Guard::nothing_broken();
    for stored in [true, false] {
        let object = Object::default();
        let mut raised = now(&object, raise(&object, token(7))).unwrap();
        let error = now_with(&object, &mut answered_then(&[Fate::Late]), raised.write("one")).unwrap().unwrap_err();
        assert_eq!(error.written(), Written::Unknown);
        let FenceError::InDoubt { error: NoAnswer, write, .. } = error else { panic!("{error}") };
        if stored {
            object.land(0);
        }
        let again = now(&object, raise(&object, token(7))).unwrap();
        assert_eq!(again.found_is_of() == Some(&write), stored);
        assert_eq!(again.found(), if stored { "one" } else { "" });
        if !stored {
            object.land(0);
            assert_eq!(object.content(), "", "the raise has moved the tag");
        }
    }
}

#[test]
fn a_stale_holder_whose_answer_was_lost_is_told_that_it_may_have_written() {
    let _whole = Guard::nothing_broken();
    let object = Object::default();
    let mut old = now(&object, raise(&object, token(7))).unwrap();
    now(&object, raise(&object, token(8))).unwrap();
    let error = now_with(&object, &mut answered_then(&[Fate::RequestLost]), old.write("late")).unwrap().unwrap_err();
    assert_eq!((error.stale().is_some(), error.written()), (true, Written::Unknown));
}

#[test]
fn a_raise_among_busy_writers_ends_with_an_error_that_says_so() {
    let _whole = Guard::nothing_broken();
    let object = Object::default();
    // Somebody writes after each look.
    let mut looks = 0;
    let mut fates = std::iter::from_fn(|| {
        looks += 1;
        if looks % 2 == 0 {
            object.set(Some("3"), &format!("busy {looks}"));
        }
        Some(Fate::Answered)
    });
    let error = now_with(&object, &mut fates, raise(&object, token(7))).unwrap().map(drop).unwrap_err();
    assert!(matches!(error, FenceError::Contended { rounds: 16, .. }), "{error}");
    assert!(error.to_string().contains("16 looks"), "{error}");
}

#[test]
fn the_first_raise_over_content_finds_out_a_tag_that_does_not_cover_the_fence() {
    let _whole = Guard::nothing_broken();
    let object = Object::with(Flaw::TagOfContent);
    object.set(None, "state");
    let error = now(&object, raise(&object, token(7))).map(drop).unwrap_err();
    assert!(matches!(error, FenceError::TagNotMoved), "{error}");
}

#[test]
fn verify_passes_a_store_that_keeps_to_the_rules_and_names_what_another_does() {
    let _whole = Guard::nothing_broken();
    let verified = |flaw| {
        let object = Object::with(flaw);
        now(&object, verify(&object, "new"))
    };
    assert_eq!(verified(Flaw::None), Ok(()));
    assert!(verified(Flaw::IgnoresTags).unwrap_err().contains("not enforced"));
    assert!(verified(Flaw::TagOfContent).unwrap_err().contains("leaves the tag as it was"));
}
