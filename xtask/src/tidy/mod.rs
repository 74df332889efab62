//! Tidiness of the tree: layers, first words, names, widths, and paths that the documentation
//! names.

mod circles;
mod first_words;
mod layers;
mod names;
mod paths;
mod terms;
mod tree;
mod widths;

pub(crate) use tree::Tree;

/// A rule of the sources, and how the tree is held to it.
pub(crate) struct Check {
    /// Its name on the command line.
    pub(crate) name: &'static str,
    /// Its subject, in a line.
    pub(crate) about: &'static str,
    /// The faults, each with its place.
    pub(crate) run: fn(&Tree) -> Vec<String>,
}

/// All checks.
pub(crate) const CHECKS: &[Check] = &[
    Check {
        name: "layers",
        about: "modules use those above them in the table, and no others",
        run: layers::faults,
    },
    Check {
        name: "circles",
        about: "no more than three files of a crate use one another in a circle",
        run: circles::faults,
    },
    Check {
        name: "first-words",
        about: "documentation begins with a word that names something",
        run: first_words::faults,
    },
    Check {
        name: "names",
        about: "types are named by nouns; an idea has one name",
        run: names::faults,
    },
    Check {
        name: "widths",
        about: "no line of code or documentation is too wide",
        run: widths::faults,
    },
    Check { name: "paths", about: "paths and links in Markdown files exist", run: paths::faults },
    Check {
        name: "terms",
        about: "the page about masks names what is in the code",
        run: terms::faults,
    },
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs every check, so that `cargo test --workspace` holds the tree to them.
    #[test]
    fn the_tree_is_tidy() {
        let tree = Tree::read();
        let mut faults = Vec::new();
        for check in CHECKS {
            faults
                .extend((check.run)(&tree).iter().map(|fault| format!("{}: {fault}", check.name)));
        }
        assert!(faults.is_empty(), "{}", faults.join("\n"));
    }
}
