//! Files to deploy from: their commands are ones that the program takes, and their times agree.

use std::path::{Path, PathBuf};

use crate::command::palmette;

fn deploy() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy")
}

fn read(name: &str) -> String {
    std::fs::read_to_string(deploy().join(name)).expect("a file to deploy from")
}

/// Arguments of the command in a manifest: the items of its only list that is named `args`.
fn arguments(manifest: &str) -> Vec<String> {
    let lines = manifest.lines().skip_while(|line| line.trim() != "args:").skip(1);
    let lines = lines.map(str::trim).filter(|line| !line.starts_with('#'));
    let items = lines.map_while(|line| line.strip_prefix("- "));
    items.map(|item| item.replace("$(JOB_COMPLETION_INDEX)", "0")).collect()
}

/// Checks that the program knows each argument: help is shown only after all of them were read.
#[track_caller]
fn check_taken(place: &str, arguments: &[String]) {
    let arguments = arguments.iter().map(String::as_str).chain(["--help"]).collect::<Vec<_>>();
    assert!(arguments.len() > 3, "{place}: {arguments:?}");
    let output = palmette(&arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{place}: {arguments:?}: {errors}");
}

#[test]
fn manifests_start_what_there_is() {
    for name in ["kubernetes.yaml", "kubernetes-replicas.yaml", "kubernetes-texts.yaml"] {
        let manifest = read(name);
        let arguments = arguments(&manifest);
        check_taken(name, &arguments);
        // The pod may live for as long as the server drains, and a balancer sees it first.
        let seconds = |option: &str| -> u64 {
            let value =
                arguments.iter().find_map(|text| text.strip_prefix(option)?.strip_prefix('='));
            value
                .and_then(|value| value.parse().ok())
                .unwrap_or_else(|| panic!("{name}: no {option}"))
        };
        let after = |key: &str| -> u64 {
            let line = manifest.lines().find_map(|line| line.trim().strip_prefix(key)).expect(key);
            line.trim().parse().expect("a number")
        };
        let grace = after("terminationGracePeriodSeconds:");
        let drains = match name {
            "kubernetes-texts.yaml" => seconds("--text-drain-grace"),
            _ => seconds("--drain-grace"),
        };
        assert!(grace > seconds("--drain-delay") + drains + 2, "{name}: {grace}");
        let probe = manifest.split("readinessProbe:").nth(1).expect("a probe");
        assert!(probe.contains("periodSeconds: 2") && seconds("--drain-delay") > 4, "{name}");
        for word in [
            "runAsNonRoot: true",
            "readOnlyRootFilesystem: true",
            "drop: [ALL]",
            "kind: NetworkPolicy",
        ] {
            assert!(manifest.contains(word), "{name} lacks {word}");
        }
    }
    check_taken("recommend-job.yaml", &arguments(&read("recommend-job.yaml")));
    let unit = read("palmette.service");
    let start = unit.lines().find_map(|line| line.strip_prefix("ExecStart=/usr/bin/palmette "));
    let start = start.expect("a start").split(' ').filter(|word| !word.starts_with('$'));
    check_taken("palmette.service", &start.map(str::to_owned).collect::<Vec<_>>());
}

#[test]
fn the_image_is_made_of_what_there_is() {
    let image = read("Containerfile");
    let instruction = |name: &str| {
        image.lines().find_map(|line| line.strip_prefix(name)).expect("an instruction")
    };
    let command: Vec<String> = serde_json::from_str(instruction("CMD ")).expect("a list");
    check_taken("Containerfile", &command);
    let cargo =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml")).unwrap();
    for feature in instruction("ARG FEATURES=").split(',') {
        assert!(cargo.contains(&format!("\n{feature} = [")), "there is no feature {feature}");
    }
    let workspace = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let version = std::fs::read_to_string(workspace.join("Cargo.toml")).unwrap();
    let version = version
        .lines()
        .find_map(|line| line.strip_prefix("rust-version = "))
        .unwrap()
        .trim_matches('"')
        .to_owned();
    assert!(
        image.contains(&format!("FROM rust:{version}-")),
        "the image builds with Rust {version}"
    );
    // What the build reads is sent to the builder, and nothing else.
    let ignored = std::fs::read_to_string(workspace.join(".dockerignore")).unwrap();
    let kept: Vec<&str> = ignored.lines().filter_map(|line| line.strip_prefix('!')).collect();
    assert_eq!(kept, ["Cargo.toml", "Cargo.lock", "crates", "lab", "xtask"]);
    let user = instruction("USER ");
    assert!(user.split(':').all(|id| id.parse::<u32>().is_ok_and(|id| id > 0)), "{user}");
}
