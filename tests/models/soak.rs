//! After long use, a structure is at most a quarter larger than a new one with the same contents. The sorted set's own
//! soak tests are with its model.

use dunlin::keyspace::{Database, New};
use dunlin::value::list::{self, End};
use dunlin::value::text::TextView;
use dunlin::value::{Hash, List, Set, hash, set};
use fastrand::Rng;

/// The number of elements, and how often each is replaced.
const HELD: usize = 20_000;
const TURNS: usize = 10;

/// Asserts that what was churned has at most 1.25 times the bytes of what is fresh.
fn assert_lean(churned: usize, fresh: usize) {
    assert!(churned * 4 <= fresh * 5, "{churned} bytes after churn, {fresh} when fresh");
}

/// A name of one of several lengths, unlike all with another number.
fn name(rng: &mut Rng, number: usize) -> Vec<u8> {
    let prefix = ["u", "user-", "somebody:", "a name that is longer than most names of its kind are:"][rng.usize(..4)];
    format!("{prefix}{number}").into_bytes()
}

/// Replaces names at random places: `replace` gets the old and the new name.
fn churn(mut replace: impl FnMut(Option<&[u8]>, &[u8])) {
    let mut rng = Rng::with_seed(7);
    let mut names: Vec<Vec<u8>> = Vec::new();
    for number in 0..HELD * (TURNS + 1) {
        let comes = name(&mut rng, number);
        if names.len() < HELD {
            replace(None, &comes);
            names.push(comes);
        } else {
            let place = rng.usize(..HELD);
            replace(Some(&names[place]), &comes);
            names[place] = comes;
        }
    }
}

#[test]
fn a_set_stays_lean() {
    let limits = set::Limits::default();
    let mut churned = Set::new();
    churn(|goes, comes| {
        assert!(goes.is_none_or(|goes| churned.remove(goes)));
        assert!(churned.insert(comes, &limits));
    });
    churned.check();
    let mut fresh = Set::new();
    churned.iter().for_each(|member| assert!(fresh.insert(&member.to_vec(), &limits)));
    assert_lean(churned.memory(), fresh.memory());
}

#[test]
fn a_hash_whose_fields_and_values_change_stays_lean() {
    let limits = hash::Limits::default();
    let mut churned = Hash::new();
    let mut rng = Rng::with_seed(8);
    churn(|goes, comes| {
        assert!(goes.is_none_or(|goes| churned.remove(goes)));
        churned.insert(comes, &name(&mut rng, 1), &limits);
        churned.insert(comes, &name(&mut rng, 2), &limits);
    });
    churned.check();
    let mut fresh = Hash::new();
    churned.iter().for_each(|entry| {
        fresh.insert(&entry.field.to_vec(), &entry.value.to_vec(), &limits);
    });
    assert_lean(churned.memory(), fresh.memory());
}

#[test]
fn a_list_stays_lean_as_a_queue_and_when_changed_in_the_middle() {
    let limits = list::Limits::default();
    let mut rng = Rng::with_seed(9);
    let (mut queue, mut middle) = (List::new(), List::new());
    for number in 0..HELD * TURNS {
        let element = name(&mut rng, number);
        queue.push(End::Head, [element.as_slice()], &limits);
        middle.push(End::Tail, [element.as_slice()], &limits);
        if number >= HELD {
            assert!(queue.pop(End::Tail, &limits).is_some());
            let place = rng.usize(..HELD);
            middle.remove(place..place + 1, &limits);
        }
    }
    for churned in [queue, middle] {
        churned.check();
        let mut fresh = List::new();
        churned.iter().for_each(|element| fresh.push(End::Tail, [element.to_vec().as_slice()], &limits));
        assert_lean(churned.memory(), fresh.memory());
    }
}

#[test]
fn a_keyspace_whose_keys_values_and_deadlines_change_stays_lean() {
    let store = |database: &mut Database, key: &[u8], number: usize| {
        let value = vec![b'v'; number % 300];
        let handle = database.insert(key, New::Text(TextView::Raw(&value)));
        database.set_deadline(handle, (!number.is_multiple_of(3)).then_some(number as i64));
    };
    let mut churned = Database::new(1);
    let mut number = 0;
    churn(|goes, comes| {
        if let Some(handle) = goes.and_then(|goes| churned.find(goes)) {
            drop(churned.delete(handle));
        }
        store(&mut churned, comes, number);
        number += 1;
    });
    churned.check();
    let mut fresh = Database::new(1);
    for handle in churned.handles() {
        let key = churned.key(handle);
        let made = fresh.insert(key, New::Value(churned.view(handle).to_value()));
        fresh.set_deadline(made, churned.deadline(handle));
    }
    assert_lean(churned.memory() + churned.slack(), fresh.memory() + fresh.slack());
}
