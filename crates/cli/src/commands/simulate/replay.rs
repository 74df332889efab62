//! Replay of a recording: the same events must lead to the same actions.

use std::path::Path;

use anyhow::{Context, bail, ensure};
use palmette_serve_schedule::{Action, Record, Scheduler};
use serde_json::json;

use super::json_lines::lines;
use crate::output::{grouped, print, print_json};

pub(super) fn run(path: &Path, json: bool) -> anyhow::Result<()> {
    let file = path.display();
    let lines = lines(path)?;
    let mut lines = lines.iter().map(|(number, line)| {
        let record: Record = serde_json::from_str(line).with_context(|| {
            format!(
                "{file}:{number}: must be {{\"config\", \"costs\"}}, {{\"now\", \"event\"}} or {{\"actions\"}}"
            )
        })?;
        anyhow::Ok((*number, record))
    });
    let Some(first) = lines.next().transpose()? else { bail!("{file}: no lines") };
    let (_, Record::Begin { config, costs }) = first else {
        bail!("{file}:{}: the first line must be {{\"config\": …, \"costs\": […]}}", first.0)
    };
    let mut scheduler = Scheduler::new(config, costs);
    let (mut events, mut actions) = (0u64, 0u64);
    // The event before, and the actions that it led to here and that nobody has compared yet.
    let mut last: Option<(usize, String)> = None;
    let mut here: Vec<Action> = Vec::new();
    let differs = |last: &Option<(usize, String)>, recorded: &[Action], here: &[Action]| {
        let (number, event) = last.clone().unwrap_or_default();
        let document = |actions: &[Action]| serde_json::to_string(actions).unwrap_or_default();
        let (recorded, here) = (document(recorded), document(here));
        format!(
            "{file}:{number}: the actions differ\n  event     {event}\n  recorded  {recorded}\n  now       {here}"
        )
    };
    for line in lines {
        let (number, record) = line?;
        match record {
            Record::Begin { .. } => {
                bail!("{file}:{number}: a recording begins once, on its first line")
            }
            Record::Event { now, event } => {
                ensure!(here.is_empty(), differs(&last, &[], &here));
                last = Some((number, serde_json::to_string(&event)?));
                scheduler.step(now, event, &mut here);
                events += 1;
                actions += here.len() as u64;
            }
            Record::Actions { actions: recorded } => {
                ensure!(recorded == here, differs(&last, &recorded, &here));
                here.clear();
            }
        }
    }
    // A recording that was cut off after an event lacks its actions: what is there agrees.
    let unfinished = !here.is_empty();
    if json {
        return print_json(
            &json!({"events": events, "actions": actions, "agrees": true, "unfinished": unfinished}),
        );
    }
    let cut = if unfinished { "; the last event's actions were not recorded" } else { "" };
    print(&format!("{} events led to the same {} actions{cut}", grouped(events), grouped(actions)))
}
