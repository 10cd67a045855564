//! Every relative link of the documentation leads to a file that is there, and to a heading that is in it.

use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn every_relative_link_in_the_documentation_resolves() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut pages = vec![root.join("README.md"), root.join("CHANGELOG.md")];
    pages_under(&root.join("docs"), &mut pages);
    let dead: Vec<_> = pages.iter().flat_map(|page| dead_links(page, &read(page))).collect();
    assert!(dead.is_empty(), "dead links:\n{}", dead.join("\n"));
    let links: usize = pages.iter().map(|page| links(&read(page)).len()).sum();
    assert!(links > 20, "only {links} links were found: the pattern finds nothing any more");
}

/// The control: without it a pattern that matches nothing would pass.
#[test]
fn a_dead_link_is_found_whatever_is_wrong_with_it() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/page.md");
    let text = "\
# A page, with a heading

[file](nowhere.md) [heading](guarantees.md#no-such-heading) [own](#nor-this) [folder](../srcc/)
[fine](guarantees.md) [fine](../README.md#stores) [fine](#a-page-with-a-heading) [fine](https://example.com/x.md)
```md
[not a link](in-code.md)
```
`[nor](this.md)`
";
    let dead = dead_links(&page, text);
    let named = |link: &str| dead.iter().filter(|line| line.contains(link)).count();
    assert_eq!(dead.len(), 4, "{dead:#?}");
    assert_eq!(["nowhere.md", "#no-such-heading", "#nor-this", "../srcc/"].map(named), [1; 4]);
}

fn pages_under(folder: &Path, pages: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("readable").path();
        match path.extension() {
            _ if path.is_dir() => pages_under(&path, pages),
            Some(extension) if extension == "md" => pages.push(path),
            _ => {}
        }
    }
}

fn dead_links(page: &Path, text: &str) -> Vec<String> {
    let dead = |link: &&str| !resolves(page, text, link);
    links(text).into_iter().filter(dead).map(|link| format!("{}: {link}", page.display())).collect()
}

fn resolves(page: &Path, text: &str, link: &str) -> bool {
    let (file, heading) = link.split_once('#').unwrap_or((link, ""));
    let target = page.parent().expect("it is in a folder").join(file);
    if !file.is_empty() && !target.exists() {
        return false;
    }
    match (heading, file) {
        ("", _) => true,
        (heading, "") => has_heading(text, heading),
        (heading, _) => has_heading(&read(&target), heading),
    }
}

/// The targets of all links that do not lead elsewhere.
fn links(text: &str) -> Vec<&str> {
    let mut found = Vec::new();
    for line in prose(text) {
        // Every second part is inside of backticks.
        for part in line.split('`').step_by(2) {
            let ends = part.split("](").skip(1).filter_map(|rest| rest.split_once(')'));
            found.extend(ends.map(|(link, _)| link).filter(|link| !link.contains("://")));
        }
    }
    found
}

fn has_heading(text: &str, slug: &str) -> bool {
    let mut headings = prose(text).filter(|line| line.starts_with('#'));
    headings.any(|line| slug_of(line.trim_start_matches('#').trim()) == slug)
}

/// As the usual renderers make it: lower case, spaces as hyphens, without punctuation.
fn slug_of(heading: &str) -> String {
    let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.collect::<String>().to_lowercase().replace(' ', "-")
}

/// The lines outside of code blocks.
fn prose(text: &str) -> impl Iterator<Item = &str> {
    let mut in_code = false;
    text.lines().filter(move |line| {
        let fence = line.trim_start().starts_with("```");
        in_code ^= fence;
        !fence && !in_code
    })
}

fn read(page: &Path) -> String {
    fs::read_to_string(page).unwrap_or_else(|error| panic!("{}: {error}", page.display()))
}
