//! Markup that is written piece by piece. What is markup is known when the program
//! is built; everything else is escaped.

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Html(String);

impl Html {
    /// Adds markup.
    pub(super) fn raw(&mut self, markup: &'static str) -> &mut Self {
        self.0.push_str(markup);
        self
    }

    /// Adds text, of an element or of a quoted attribute.
    pub(super) fn text(&mut self, text: &str) -> &mut Self {
        for character in text.chars() {
            match character {
                '&' => self.0.push_str("&amp;"),
                '<' => self.0.push_str("&lt;"),
                '>' => self.0.push_str("&gt;"),
                '"' => self.0.push_str("&quot;"),
                '\'' => self.0.push_str("&#39;"),
                // No character of HTML, nor to be seen.
                control if control.is_control() => self.0.push('\u{fffd}'),
                other => self.0.push(other),
            }
        }
        self
    }

    /// Adds text of others, whose direction of writing must not turn ours around.
    pub(super) fn foreign(&mut self, text: &str) -> &mut Self {
        self.raw("<bdi>").text(text).raw("</bdi>")
    }

    /// Adds a number, of at most two decimals.
    pub(super) fn number(&mut self, number: f64) -> &mut Self {
        let rounded = (number * 100.0).round() / 100.0;
        self.text(&rounded.to_string())
    }

    pub(super) fn finish(self) -> String {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_never_markup() {
        let mut html = Html::default();
        html.raw("<p title=\"").text("\"'><script>&").raw("\">");
        html.foreign("</bdi>a\n\0b").number(1.005).number(-0.5);
        assert_eq!(
            html.finish(),
            "<p title=\"&quot;&#39;&gt;&lt;script&gt;&amp;\"><bdi>&lt;/bdi&gt;a\u{fffd}\u{fffd}b\
             </bdi>1-0.5"
        );
    }
}
