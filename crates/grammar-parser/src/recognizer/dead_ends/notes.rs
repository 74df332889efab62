//! Notes on dead ends, in words: texts that contextual lexing takes from a grammar.

use super::DeadEnd;
use crate::recognizer::Recognizer;
use crate::span::Span;

impl Recognizer {
    /// Notes on dead ends, each with its place in the source where it has one: a terminal after
    /// which a text would be stuck, one that looks at the text before it, or that dead ends were
    /// too much to find out.
    pub fn dead_end_notes(&self) -> Vec<(Option<Span>, String)> {
        let found = self.dead_ends();
        let mut all: Vec<_> = found.stuck.iter().map(|one| self.stuck(one)).collect();
        let looking_back = self.lexer().looking_back();
        if let Some(first) = looking_back.iter().next() {
            let terminal = &self.grammar().terminals()[first.index()];
            let message = format!(
                "{} looks at the text before it: masks are found by walking the vocabulary, and may lead to a text that nothing completes; \
                 leave out the lookbehind or word boundary at its beginning where the rules say as much",
                terminal.name
            );
            all.push((terminal.span, message));
        } else if !found.are_excluded {
            let message = "the grammar is too large to find out where no lexeme can follow another: a mask may lead to a text that \
                           nothing completes; end free text by characters that it cannot hold, or let terminals not compete \
                           (lexing `any`)";
            all.push((None, message.to_owned()));
        }
        if self.start().is_none() {
            all.push((None, "no text is in the language".to_owned()));
        }
        all
    }

    fn stuck(&self, dead_end: &DeadEnd) -> (Option<Span>, String) {
        let terminals = self.grammar().terminals();
        let terminal = &terminals[dead_end.terminal.index()];
        let followers: Vec<&str> =
            dead_end.followers.iter().map(|next| terminals[next.index()].name.as_str()).collect();
        let message = format!(
            "no text has {name} where {} is to follow: each lexeme of that would have been a part of the one before; put something \
             between them that {name} cannot hold, or let terminals not compete (lexing `any`)",
            followers.join(" or "),
            name = terminal.name
        );
        (terminal.span, message)
    }
}
