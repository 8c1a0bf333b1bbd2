//! Finds the functions in a formatted source: rustfmt puts a function's closing brace at its own indentation.

/// A function and its length.
pub struct Function {
    /// The name of the function.
    pub name: String,
    /// The line on which it begins.
    pub line: usize,
    /// The number of its lines, including braces.
    pub lines: usize,
}

/// All functions with a body, in order; nested ones too.
pub fn functions_of(text: &str) -> Vec<Function> {
    let lines: Vec<&str> = text.lines().collect();
    let mut functions = Vec::new();
    for (start, line) in lines.iter().enumerate() {
        let Some(name) = name_of(line) else { continue };
        let indent = &line[..line.len() - line.trim_start().len()];
        let closing = format!("{indent}}}");
        let declared = lines[start..].iter().position(|line| line.trim_end().ends_with(['{', ';', '}'])).unwrap_or(0);
        if !lines[start + declared].trim_end().ends_with('{') {
            continue;
        }
        let Some(length) = lines[start..].iter().position(|line| *line == closing) else { continue };
        functions.push(Function { name, line: start + 1, lines: length + 1 });
    }
    functions
}

fn name_of(line: &str) -> Option<String> {
    const BEFORE: &[&str] = &["pub ", "pub(crate) ", "pub(super) ", "const ", "async ", "extern \"C\" "];
    let mut rest = line.trim_start();
    while let Some(shorter) = BEFORE.iter().find_map(|word| rest.strip_prefix(word)) {
        rest = shorter;
    }
    let name: String = rest.strip_prefix("fn ")?.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    Some(name)
}
