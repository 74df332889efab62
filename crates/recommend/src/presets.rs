//! Templates of published models, by the name under which they are known.

use crate::template::TemplateFile;

/// Names of templates that are carried along, each with the text of its file.
const PRESETS: [(&str, &str); 5] = [
    ("lc-rec", include_str!("presets/lc-rec.json")),
    ("minionerec", include_str!("presets/minionerec.json")),
    ("minionerec-sft", include_str!("presets/minionerec-sft.json")),
    ("openonerec", include_str!("presets/openonerec.json")),
    ("tiger", include_str!("presets/tiger.json")),
];

impl TemplateFile {
    /// Names of the templates that are carried along: those of published models, to be copied and
    /// changed.
    pub fn preset_names() -> impl Iterator<Item = &'static str> {
        PRESETS.iter().map(|&(name, _)| name)
    }

    /// The template of a published model.
    ///
    /// # Errors
    /// A sentence that names those that there are.
    pub fn preset(name: &str) -> Result<Self, String> {
        match PRESETS.iter().find(|preset| preset.0 == name) {
            Some((_, text)) => Self::from_json(text),
            None => {
                let names: Vec<&str> = Self::preset_names().collect();
                Err(format!("there is no preset {name:?}; there are {}", names.join(", ")))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn presets_are_templates() {
        for name in TemplateFile::preset_names() {
            TemplateFile::preset(name).unwrap_or_else(|error| panic!("{name}: {error}"));
        }
        assert!(TemplateFile::preset("x").unwrap_err().contains("lc-rec"));
    }
}
