//! Where names stand beside dots: near their own, apart from each other and from what
//! must stay visible.

/// Height of a name, px.
pub(crate) const HEIGHT: i32 = 15;

/// Distances of a name from its dot, px, the best first.
const DISTANCES: [i32; 6] = [7, 16, 28, 42, 58, 76];

/// Directions, as x and y of 0 to 3: right and left before above and below.
const DIRECTIONS: [(i32, i32); 12] = [
    (3, 0),
    (-3, 0),
    (2, -2),
    (2, 2),
    (-2, -2),
    (-2, 2),
    (0, -3),
    (0, 3),
    (1, -3),
    (1, 3),
    (-1, -3),
    (-1, 3),
];

/// How often every name may look for a better place.
const ROUNDS: usize = 4;

/// A rectangle, px; y grows downwards.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Area {
    /// Left edge.
    pub(crate) left: i32,
    /// Upper edge.
    pub(crate) top: i32,
    /// Right edge.
    pub(crate) right: i32,
    /// Lower edge.
    pub(crate) bottom: i32,
}

impl Area {
    fn overlap(self, other: Self) -> i32 {
        let width = self.right.min(other.right) - self.left.max(other.left);
        let height = self.bottom.min(other.bottom) - self.top.max(other.top);
        width.max(0) * height.max(0)
    }

    /// A line from its upper left to its lower right end, with a pixel around it.
    pub(crate) fn between((left, top): (i32, i32), (right, bottom): (i32, i32)) -> Self {
        Self {
            left: left - 1,
            top: top - 1,
            right: right + 1,
            bottom: bottom + 1,
        }
    }

    /// A square around a point.
    pub(crate) fn around((x, y): (i32, i32), radius: i32) -> Self {
        Self {
            left: x - radius,
            top: y - radius,
            right: x + radius,
            bottom: y + radius,
        }
    }

    /// From the rectangle to a point, px.
    fn distance(self, (x, y): (i32, i32)) -> i32 {
        let right = (self.left - x).max(x - self.right).max(0);
        let down = (self.top - y).max(y - self.bottom).max(0);
        right.max(down)
    }

    fn size(self) -> i32 {
        (self.right - self.left) * (self.bottom - self.top)
    }
}

/// Places for names of these widths beside these dots, each as near to its
/// dot as the others, what must stay visible and the bounds allow.
pub(crate) fn place(
    dots: &[(i32, i32)],
    widths: &[i32],
    visible: &[Area],
    bounds: Area,
) -> Vec<Area> {
    let mut places: Vec<Option<Area>> = vec![None; dots.len()];
    for _ in 0..ROUNDS {
        for (index, (&dot, &width)) in dots.iter().zip(widths).enumerate() {
            let cost = |&(place, distance): &(Area, i32)| {
                let others = places.iter().enumerate();
                let covered: i32 = others
                    .filter(|(other, _)| *other != index)
                    .filter_map(|(_, other)| Some(place.overlap((*other)?)))
                    .sum();
                let hidden: i32 = visible.iter().map(|&mark| place.overlap(mark)).sum();
                let outside = place.size() - place.overlap(bounds);
                let own = place.distance(dot);
                let nearer = dots.iter().filter(|&&other| place.distance(other) < own);
                let misleading = nearer.count() as i32;
                distance + 40 * misleading + 3 * covered + 3 * hidden + 20 * outside
            };
            places[index] = candidates(dot, width)
                .min_by_key(cost)
                .map(|(place, _)| place);
        }
    }
    places.into_iter().flatten().collect()
}

/// Places beside a dot, with how far from it.
fn candidates((x, y): (i32, i32), width: i32) -> impl Iterator<Item = (Area, i32)> {
    let all = DISTANCES
        .into_iter()
        .flat_map(|distance| DIRECTIONS.map(|direction| (distance, direction)));
    all.map(move |(distance, (right, down))| {
        let left = match right {
            1.. => x + distance * right / 3,
            0 => x - width / 2,
            _ => x + distance * right / 3 - width,
        };
        // A name beside its dot is centred on it, others are off by a half.
        let off = (HEIGHT / 2) * down.signum();
        let top = y + distance * down / 3 + off - HEIGHT / 2;
        let place = Area {
            left,
            top,
            right: left + width,
            bottom: top + HEIGHT,
        };
        (place, distance)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: Area = Area {
        left: 0,
        top: 0,
        right: 300,
        bottom: 200,
    };

    #[test]
    fn a_single_name_stands_to_the_right() {
        let places = place(&[(100, 100)], &[50], &[], BOUNDS);
        assert_eq!((places[0].left, places[0].right), (107, 157));
        assert_eq!(places[0].top, 93);
    }

    #[test]
    fn a_name_is_nearest_to_its_own_dot() {
        let dots = [(200, 100), (213, 100)];
        let places = place(
            &dots,
            &[80, 90],
            &dots.map(|dot| Area::around(dot, 4)),
            BOUNDS,
        );
        assert!(places[0].distance(dots[0]) <= places[0].distance(dots[1]));
        assert!(places[1].distance(dots[1]) <= places[1].distance(dots[0]));
    }

    #[test]
    fn names_stay_apart_and_within_bounds() {
        let dots = [(290, 5), (288, 8), (285, 12), (150, 100), (152, 101)];
        let marks = dots.map(|dot| Area::around(dot, 4));
        let places = place(&dots, &[80, 90, 100, 80, 90], &marks, BOUNDS);
        for (index, one) in places.iter().enumerate() {
            assert_eq!(one.overlap(BOUNDS), one.size(), "{one:?}");
            let hidden = marks.iter().any(|&mark| one.overlap(mark) > 0);
            assert!(!hidden, "{one:?}");
            for other in &places[..index] {
                assert_eq!(one.overlap(*other), 0, "{one:?} {other:?}");
            }
        }
    }
}
