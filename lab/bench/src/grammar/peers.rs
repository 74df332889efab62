//! Other engines as programs, over the same cases.

use std::io::{self, BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::Duration;

use super::CaseOutcome;

/// A program that follows cases and prints what came of each as a line of JSON, a [`CaseOutcome`],
/// in order.
///
/// It is run with `--cases FILE --skip N` behind its arguments, the first so many cases to be left
/// out.
#[derive(Clone, Debug)]
pub struct Peer {
    /// Name in reports.
    pub name: String,
    /// The program and its arguments; never empty.
    pub command: Vec<String>,
}

/// Loading a vocabulary comes before the first case.
const LOADING: Duration = Duration::from_secs(60);

impl Peer {
    /// Follows the cases of a file, whose names are `names`, each for at most `at_most`; shows what
    /// came of each as it comes.
    ///
    /// A case that takes longer ends the program, and so does one that it does not survive: the
    /// case counts as not compiled, and the program is started again behind it.
    ///
    /// # Errors
    /// When the program cannot be started, or prints what is no outcome.
    pub fn run(
        &self,
        cases: &Path,
        names: &[&str],
        at_most: Duration,
        mut show: impl FnMut(&CaseOutcome),
    ) -> io::Result<Vec<CaseOutcome>> {
        let mut outcomes = Vec::with_capacity(names.len());
        while outcomes.len() < names.len() {
            let mut running = self.start(cases, outcomes.len())?;
            let mut wait = at_most + LOADING;
            while outcomes.len() < names.len() {
                let name = names[outcomes.len()];
                let next = match running.lines.recv_timeout(wait) {
                    Ok(line) => Some(self.outcome(&line?, name)?),
                    Err(RecvTimeoutError::Timeout) => None,
                    Err(RecvTimeoutError::Disconnected) => {
                        let status = running.child.wait()?;
                        outcomes.push(lost(name, format!("{} ended, {status}", self.name)));
                        break;
                    }
                };
                let Some(outcome) = next else {
                    let why = format!("took more than {} s", at_most.as_secs_f64());
                    outcomes.push(lost(name, why));
                    break;
                };
                show(&outcome);
                outcomes.push(outcome);
                wait = at_most;
            }
        }
        Ok(outcomes)
    }

    fn start(&self, cases: &Path, skip: usize) -> io::Result<Running> {
        let (program, arguments) = self.command.split_first().ok_or_else(|| {
            io::Error::new(io::ErrorKind::InvalidInput, format!("{}: no program", self.name))
        })?;
        let mut child = Command::new(program)
            .args(arguments)
            .arg("--cases")
            .arg(cases)
            .args(["--skip", &skip.to_string()])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .map_err(|error| io::Error::new(error.kind(), format!("{program}: {error}")))?;
        let stdout = child.stdout.take().expect("it was asked for");
        let (send, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(stdout).lines() {
                if send.send(line).is_err() {
                    break;
                }
            }
        });
        Ok(Running { child, lines })
    }

    fn outcome(&self, line: &str, name: &str) -> io::Result<CaseOutcome> {
        let invalid = |why: String| io::Error::new(io::ErrorKind::InvalidData, why);
        let outcome: CaseOutcome = serde_json::from_str(line)
            .map_err(|error| invalid(format!("{}: {error} in {line:.200}", self.name)))?;
        if outcome.name != name {
            let found = outcome.name;
            return Err(invalid(format!("{}: a line about {found}, not {name}", self.name)));
        }
        Ok(outcome)
    }
}

/// A program that was started; dropping it ends it.
struct Running {
    child: Child,
    lines: Receiver<io::Result<String>>,
}

impl Drop for Running {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn lost(name: &str, why: String) -> CaseOutcome {
    CaseOutcome { name: name.to_owned(), error: Some(why), ..CaseOutcome::default() }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    fn run(script: &str, at_most: Duration) -> io::Result<Vec<CaseOutcome>> {
        // `sh -c SCRIPT peer --cases FILE --skip N`
        let command = ["sh", "-c", script, "peer"].map(str::to_owned).into();
        let peer = Peer { name: "peer".to_owned(), command };
        peer.run(Path::new("cases"), &["a", "b", "c"], at_most, |_| {})
    }

    const LINE: &str = r#"line() { echo '{"name":"'$1'","compiled":true,"compile_ms":1.5}'; }; "#;

    #[test]
    fn each_case_has_its_outcome() {
        let script = LINE.to_owned() + r#"[ "$2 $4" = "cases 0" ] && line a; line b; line c"#;
        let outcomes = run(&script, Duration::from_secs(10)).unwrap();
        assert!(outcomes.iter().all(|outcome| outcome.compiled && outcome.compile_ms == 1.5));
        let names: Vec<_> = outcomes.iter().map(|outcome| &*outcome.name).collect();
        assert_eq!(names, ["a", "b", "c"]);
    }

    #[test]
    fn a_case_that_is_too_slow_or_fatal_is_lost_alone() {
        let script = LINE.to_owned()
            + "case $4 in 0) line a; exec sleep 100;; 2) exit 3;; esac; echo unexpected";
        let outcomes = run(&script, Duration::from_millis(200)).unwrap();
        let errors: Vec<_> = outcomes.iter().map(|outcome| outcome.error.as_deref()).collect();
        assert_eq!(errors[..2], [None, Some("took more than 0.2 s")]);
        assert!(errors[2].unwrap().starts_with("peer ended, exit status: 3"), "{errors:?}");
    }

    #[test]
    fn what_is_no_outcome_is_an_error() {
        let error = run("echo no", Duration::from_secs(10)).unwrap_err();
        assert!(error.to_string().starts_with("peer: expected"), "{error}");
        let script = LINE.to_owned() + "line b";
        let error = run(&script, Duration::from_secs(10)).unwrap_err();
        assert_eq!(error.to_string(), "peer: a line about b, not a");
        let nothing = Peer { name: "peer".to_owned(), command: Vec::new() };
        let error = nothing.run(Path::new("cases"), &["a"], LOADING, |_| {}).unwrap_err();
        assert_eq!(error.to_string(), "peer: no program");
    }
}
