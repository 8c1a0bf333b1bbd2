//! Vector sets against a naive model, and the invariants of their graph.

use super::graph::Candidate;
use super::*;
use std::collections::BTreeMap;

const DIMENSIONS: u32 = 6;

/// The model: elements with their vectors and attributes.
type Model = BTreeMap<Vec<u8>, (Vec<f32>, Option<Vec<u8>>)>;

fn set_of(quantization: Quantization, links: u16) -> VectorSet {
    VectorSet::with(&Parameters { dimensions: DIMENSIONS, reduced: None, quantization, links }, 0, 0)
}

fn random_vector(generator: &mut Rng) -> Vec<f32> {
    (0..DIMENSIONS).map(|_| generator.f32() - 0.5).collect()
}

/// A random name of few, so that elements are replaced and removed often.
fn random_name(generator: &mut Rng, names: usize) -> Vec<u8> {
    format!("element-{}", generator.usize(..names)).into_bytes()
}

/// Makes a random change to a set and to the model.
fn step(set: &mut VectorSet, model: &mut Model, generator: &mut Rng, names: usize) {
    let name = random_name(generator, names);
    let attributes = generator.bool().then(|| format!("{{\"n\":{}}}", generator.u8(..)).into_bytes());
    match generator.u8(..8) {
        0..4 => {
            let vector = random_vector(generator);
            let is_new = set.insert(&name, &vector, attributes.as_deref(), 50, generator);
            let old = model.remove(&name);
            assert_eq!(is_new, old.is_none());
            let kept = attributes.or(old.and_then(|(_, attributes)| attributes));
            model.insert(name, (vector, kept));
        }
        4..7 => assert_eq!(set.remove(&name), model.remove(&name).is_some()),
        _ => {
            assert_eq!(set.set_attributes(&name, attributes.as_deref()), model.contains_key(&name));
            if let Some(entry) = model.get_mut(&name) {
                entry.1 = attributes;
            }
        }
    }
}

/// The names in the order of the distances from a vector, with the distances.
fn ranked(model: &Model, query: &[f32], quantization: Quantization) -> Vec<f32> {
    let query = Vector::of(query, quantization);
    let distance = |vector: &[f32]| query.distance(&Vector::of(vector, quantization), quantization, vector.len());
    let mut distances: Vec<f32> = model.values().map(|(vector, _)| distance(vector)).collect();
    distances.sort_by(f32::total_cmp);
    distances
}

fn check(set: &VectorSet, model: &Model) {
    assert_eq!(set.len(), model.len());
    assert_eq!(set.attributed(), model.values().filter(|(_, attributes)| attributes.is_some()).count());
    for (name, (vector, attributes)) in model {
        let element = set.get(name).expect("the model has it");
        assert_eq!(element.attributes, attributes.as_deref());
        assert_eq!(element.vector.bytes, Vector::of(vector, set.quantization()).bytes);
    }
    check_graph(set);
}

/// Panics unless the invariants of the graph hold.
fn check_graph(set: &VectorSet) {
    let (graph, mut bytes) = (&set.graph, 0);
    for number in set.members.cells() {
        let node = graph.node(number);
        bytes += node.element.len() + node.vector.bytes.len() + node.attributes.as_ref().map_or(0, |text| text.len());
        bytes += node.level() * size_of::<graph::Layer>();
        for (layer, links) in node.layers().enumerate() {
            bytes += size_of_val(&*links.links);
            assert!(links.links.len() <= graph.shape.room(layer) + usize::from(links.extra_room));
            let farthest = links.links.iter().map(|&link| graph.distance(number, link)).fold(0.0, f32::max);
            assert!(links.links.is_empty() || links.worst.0 == farthest, "{} {farthest}", links.worst.0);
            for (place, &link) in links.links.iter().enumerate() {
                assert!(link != number && !links.links[..place].contains(&link));
                assert!(graph.node(link).level() >= layer);
                assert_eq!(graph.links(link, layer).iter().filter(|&&back| back == number).count(), 1);
            }
        }
    }
    assert_eq!(graph.entry.is_some(), !set.is_empty());
    assert_eq!(graph.bytes_of_nodes(), bytes);
}

#[test]
fn a_random_walk_agrees_with_the_model() {
    for seed in 0..60 {
        let mut generator = Rng::with_seed(seed);
        let quantization = Quantization::ALL[generator.usize(..3)];
        let (mut set, mut model) = (set_of(quantization, [4, 5, 16][generator.usize(..3)]), Model::new());
        let names = [3, 40, 200][generator.usize(..3)];
        for _ in 0..300 {
            step(&mut set, &mut model, &mut generator, names);
        }
        check(&set, &model);
        let query = random_vector(&mut generator);
        let found = set.nearest(&query, &Search { effort: 1000, is_exact: true, ..Search::default() });
        let distances: Vec<f32> = found.iter().map(|(_, distance)| *distance).collect();
        assert_eq!(distances, ranked(&model, &query, quantization));
        let names: Vec<Vec<u8>> = model.keys().cloned().collect();
        names.iter().for_each(|name| assert!(set.remove(name)));
        check(&set, &Model::new());
    }
}

#[test]
fn a_search_finds_nearly_all_of_the_nearest_also_after_many_removals() {
    let mut generator = Rng::with_seed(7);
    let (mut set, mut model) = (set_of(Quantization::Q8, 16), Model::new());
    for _ in 0..6_000 {
        step(&mut set, &mut model, &mut generator, 3_000);
    }
    let (mut found, mut wanted) = (0, 0);
    for _ in 0..100 {
        let query = random_vector(&mut generator);
        let names = |is_exact| {
            let found = set.nearest(&query, &Search { effort: 100, is_exact, ..Search::default() });
            found.iter().take(10).map(|(element, _)| element.name.to_vec()).collect::<Vec<_>>()
        };
        let exact = names(true);
        wanted += exact.len();
        found += names(false).iter().filter(|name| exact.contains(name)).count();
    }
    assert!(found * 100 >= wanted * 98, "{found} of {wanted}");
}

#[test]
fn equal_vectors_are_all_found() {
    for quantization in Quantization::ALL {
        let mut set = set_of(quantization, 16);
        let mut generator = Rng::with_seed(1);
        for number in 0..200 {
            set.insert(format!("{number}").as_bytes(), &[1.0; DIMENSIONS as usize], None, 200, &mut generator);
        }
        check_graph(&set);
        let found = set.nearest(&[1.0; DIMENSIONS as usize], &Search { effort: 200, ..Search::default() });
        assert_eq!(found.len(), 200, "{quantization:?}");
    }
}

#[test]
fn a_filter_leaves_out_what_does_not_match_and_bounds_the_visits() {
    let mut generator = Rng::with_seed(3);
    let mut set = set_of(Quantization::Q8, 16);
    for number in 0..1_000 {
        let attributes = (number % 2 == 0).then(|| format!("{}", number % 10));
        let vector = random_vector(&mut generator);
        set.insert(
            format!("{number}").as_bytes(),
            &vector,
            attributes.as_deref().map(str::as_bytes),
            100,
            &mut generator,
        );
    }
    let query = random_vector(&mut generator);
    let is_four = |attributes: &[u8]| attributes == b"4";
    let search = |max_visits| Search { effort: 100, filter: Some(&is_four), max_visits, is_exact: false };
    let found = set.nearest(&query, &search(usize::MAX));
    assert_eq!(found.len(), 100);
    assert!(found.iter().all(|(element, _)| element.attributes == Some(b"4")));
    assert!(set.nearest(&query, &search(3)).len() < 30);
    let exact = Search { effort: 100, filter: Some(&is_four), max_visits: 0, is_exact: true };
    assert_eq!(set.nearest(&query, &exact).len(), 100);
}

#[test]
fn a_fork_changes_apart_from_its_base_and_takes_back_what_it_shares() {
    let mut generator = Rng::with_seed(5);
    let (mut set, mut model) = (set_of(Quantization::Q8, 8), Model::new());
    for _ in 0..2_000 {
        step(&mut set, &mut model, &mut generator, 500);
    }
    let before = model.clone();
    let mut whole = set.clone();
    let base = Base::of(set);
    let mut fork = VectorSet::fork(base.clone());
    assert_eq!(fork.own_bytes(), 0);
    for _ in 0..5 {
        step(&mut fork, &mut model, &mut generator, 500);
    }
    assert!(fork.own_bytes() > 0 && fork.own_bytes() < fork.memory());
    for _ in 0..300 {
        step(&mut fork, &mut model, &mut generator, 500);
    }
    check(base.get(), &before);
    check(&fork, &model);
    check(&fork.clone(), &model);
    fork.set_base(None);
    fork.reclaim(&mut whole);
    assert!(!fork.is_fork());
    check(&fork, &model);
}

/// Two groups of vectors and few links make parts of the graph lose touch with each other, on any layer.
#[test]
fn a_graph_that_falls_apart_takes_every_change() {
    for seed in 0..300 {
        let mut generator = Rng::with_seed(seed);
        let parameters = Parameters { dimensions: 1, reduced: None, quantization: Quantization::None, links: 4 };
        let mut set = VectorSet::with(&parameters, 0, 0);
        let mut names: Vec<u32> = (0..80).collect();
        for name in &names {
            let vector = [generator.f32() - 0.5];
            set.insert(&name.to_le_bytes(), &vector, None, 5, &mut generator);
        }
        generator.shuffle(&mut names);
        for name in names {
            if generator.u8(..4) == 0 {
                set.insert(&name.to_le_bytes(), &[generator.f32() - 0.5], None, 5, &mut generator.clone());
            }
            assert!(set.remove(&name.to_le_bytes()));
            check_graph(&set);
        }
        assert!(set.is_empty());
    }
}

#[test]
fn vectors_that_are_no_numbers_are_found_last() {
    let mut generator = Rng::with_seed(2);
    let parameters = Parameters { dimensions: 2, reduced: None, quantization: Quantization::None, links: 4 };
    let mut set = VectorSet::with(&parameters, 0, 0);
    set.insert(b"none", &[f32::NAN, 1.0], None, 10, &mut generator);
    set.insert(b"infinite", &[f32::INFINITY, 1.0], None, 10, &mut generator);
    set.insert(b"one", &[1.0, 1.0], None, 10, &mut generator);
    for is_exact in [false, true] {
        let found = set.nearest(&[1.0, 1.0], &Search { effort: 10, is_exact, ..Search::default() });
        assert_eq!(found.first().map(|(element, _)| element.name), Some(&b"one"[..]));
    }
}

#[test]
fn candidates_are_in_the_order_of_their_distances_and_those_without_one_come_last() {
    let distances = [f32::NEG_INFINITY, -2.0, -f32::MIN_POSITIVE, -0.0, 0.0, 1e-40, 1.0, 2.0, f32::INFINITY, f32::NAN];
    let candidates: Vec<Candidate> =
        distances.into_iter().flat_map(|distance| [1, u32::MAX].map(|node| Candidate::new(distance, node))).collect();
    assert!(candidates.is_sorted_by(|one, other| one < other), "{candidates:?}");
    for (distance, pair) in distances.into_iter().zip(candidates.chunks(2)) {
        assert!(pair.iter().all(|candidate| candidate.distance().to_bits() == distance.to_bits()), "{distance}");
        assert_eq!([pair[0].node(), pair[1].node()], [1, u32::MAX]);
    }
    assert_eq!(Candidate::new(-f32::NAN, 1), Candidate::new(f32::NAN, 1));
}
