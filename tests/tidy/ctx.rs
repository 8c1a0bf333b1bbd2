//! The rule about `Ctx`, through which handlers reach everything: it has few methods, and its head lists them.

use std::collections::BTreeSet;

use super::source::sources;

/// How many methods `Ctx` has in all files, private ones included. This number goes down and never up.
const CTX_METHODS: usize = 43;

#[test]
fn ctx_has_few_methods_and_its_head_lists_all_that_handlers_use() {
    let sources = sources("src/engine");
    let methods: Vec<(&str, bool)> = sources.iter().flat_map(|source| methods_of_ctx(&source.text)).collect();
    assert!((1..=CTX_METHODS).contains(&methods.len()), "Ctx has {} methods, {CTX_METHODS} are allowed", methods.len());
    let home = sources.iter().find(|source| source.text.contains("\npub struct Ctx<")).expect("Ctx has a file");
    let head = home.text.lines().take_while(|line| line.starts_with("//!")).collect::<String>();
    let listed: BTreeSet<&str> =
        head.split("[`Ctx::").skip(1).filter_map(|link| Some(link.split_once('`')?.0)).collect();
    let public: BTreeSet<&str> = methods.iter().filter(|(_, is_public)| *is_public).map(|(name, _)| *name).collect();
    assert_eq!(listed, public, "the head of {} lists the methods that exist", home.path);
}

/// The functions in the blocks of `impl Ctx`, which end with a brace that begins a line, and whether they are public.
fn methods_of_ctx(text: &str) -> impl Iterator<Item = (&str, bool)> {
    let is_of_ctx =
        |block: &&str| block.split_once('{').is_some_and(|(of, _)| of.contains("Ctx<") && !of.contains(" for "));
    let blocks = text.split("\nimpl").skip(1).filter(is_of_ctx);
    blocks.flat_map(|block| block.split("\n}").next().unwrap_or("").lines()).filter_map(|line| {
        let declared = line.strip_prefix("    ").filter(|line| !line.starts_with(' ') && !line.starts_with('/'))?;
        let (before, name) = declared.split_once("fn ")?;
        Some((name.split(['(', '<']).next()?, before == "pub "))
    })
}
