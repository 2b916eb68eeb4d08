//! Names that are known, and what may have been meant by one that is not.

use serde::Deserialize;
use serde::de::value::Error;
use serde::de::{Deserializer, Error as _, Visitor};

/// So alike must a name be, by Jaro's measure, to be offered for another.
const ALIKE: f64 = 0.7;

/// The keys of a structure, as serde knows them.
pub(super) fn of<'de, T: Deserialize<'de>>() -> &'static [&'static str] {
    let mut fields: &'static [&'static str] = &[];
    // Always an error: nothing is read.
    let _ = T::deserialize(Fields(&mut fields));
    fields
}

/// Listens to what a structure asks for.
struct Fields<'a>(&'a mut &'static [&'static str]);

impl<'de> Deserializer<'de> for Fields<'_> {
    type Error = Error;

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _name: &'static str,
        fields: &'static [&'static str],
        _visitor: V,
    ) -> Result<V::Value, Error> {
        *self.0 = fields;
        Err(Error::custom("the fields are known"))
    }

    fn deserialize_any<V: Visitor<'de>>(self, _visitor: V) -> Result<V::Value, Error> {
        Err(Error::custom("not a structure"))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

/// What to do about a name that is not among these.
pub(super) fn hint(name: &str, known: &[&str]) -> String {
    let lower = name.to_lowercase();
    let alike = known
        .iter()
        .map(|known| (strsim::jaro(&lower, known), known));
    let nearest = alike.max_by(|a, b| a.0.total_cmp(&b.0));
    match nearest.filter(|(likeness, _)| *likeness > ALIKE) {
        Some((_, nearest)) => format!("did you mean `{nearest}`?"),
        None if known.is_empty() => "there is none here".to_owned(),
        None => {
            let known: Vec<String> = known.iter().map(|known| format!("`{known}`")).collect();
            format!("known are {}", known.join(", "))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_a_structure_are_as_serde_names_them() {
        #[derive(Deserialize)]
        #[allow(dead_code, reason = "only its names matter")]
        struct Example {
            first: Option<String>,
            #[serde(rename = "type")]
            kind: u8,
        }
        assert_eq!(of::<Example>(), ["first", "type"]);
    }

    #[test]
    fn what_is_alike_is_offered() {
        let known = ["source", "destination", "schedule"];
        assert_eq!(hint("sorce", &known), "did you mean `source`?");
        assert_eq!(hint("schedul", &known), "did you mean `schedule`?");
        assert_eq!(
            hint("xyz", &known),
            "known are `source`, `destination`, `schedule`"
        );
        assert_eq!(hint("xyz", &[]), "there is none here");
    }
}
