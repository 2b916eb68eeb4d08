//! What an endpoint for Prometheus tells.

/// The sum of the series of a metric that have this label, as `name="value"` or a part of that, or
/// of all series if it is empty; `None` if there is none.
#[must_use]
pub fn metric(exposition: &str, name: &str, label: &str) -> Option<f64> {
    let value = |line: &str| {
        let rest = line.strip_prefix(name)?;
        let is_of_it = rest.starts_with(['{', ' ']) && rest.contains(label);
        is_of_it.then(|| rest.rsplit(' ').next()?.parse::<f64>().ok())?
    };
    let values = exposition.lines().filter_map(value);
    values.reduce(|sum, value| sum + value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_series_of_a_metric_add_up() {
        let exposition =
            "# HELP a_total What it is\na_total{b=\"c\"} 3\na_total{b=\"d\"} 4\na_total_x 9\n";
        assert_eq!(metric(exposition, "a_total", ""), Some(7.0));
        assert_eq!(metric(exposition, "a_total", "b=\"d\""), Some(4.0));
        assert_eq!(metric(exposition, "a_total_x", ""), Some(9.0));
        assert_eq!(metric(exposition, "a", ""), None);
    }
}
