//! The pages about the test kit: each must show its test in every language.

/// The languages of every page: the name of the language, and the beginning of its blocks.
const LANGUAGES: &[(&str, &str)] = &[
    ("Rust", "\n```rust"),
    ("Python", "\n```python\n"),
    ("Java", "\n```java\n"),
    ("Node.js", "\n```js\n"),
    ("Go", "\n```go\n"),
];

/// A page that speaks one language alone, with the reason.
const ONE_LANGUAGE: &[(&str, &str, &str)] = &[("rust.md", "Rust", "it describes what only Rust has")];

/// The languages that the page of that name lacks; `tour` is the source in which the Rust blocks of all pages are
/// compiled and run.
pub fn faults_of(name: &str, text: &str, tour: &str) -> Vec<String> {
    let only = ONE_LANGUAGE.iter().find(|(page, ..)| *page == name).map(|(_, language, _)| *language);
    let missing =
        LANGUAGES.iter().filter(|(language, fence)| only.is_none_or(|only| only == *language) && !text.contains(fence));
    let mut faults: Vec<String> = missing.map(|(language, _)| format!("{name} shows no {language}")).collect();
    if !tour.contains(&format!("docs/test-kit/{name}\")]")) {
        faults.push(format!("nobody runs the Rust of {name}"));
    }
    faults
}
