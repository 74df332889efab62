//! Generating the users: who they are, and what they buy in which order.

use super::brands::{PriceClass, brands_of, price_class};
use super::departments::Department;
use super::dice::Dice;
use super::interests::{INTERESTS, Interest};
use super::items::NEW_BELOW_DAYS;
use super::purchases::{ShopItem, ShopUser};

const NUM_USERS: usize = 6_000;

/// Limit on refills: items of a used-up type that anybody buys for their interests.
const MOST_REFILLS: u32 = 4;

/// All users with their histories.
pub(crate) fn generate_users(items: &[ShopItem], dice: &mut Dice) -> Vec<ShopUser> {
    let types = product_types();
    let shelves = Shelves::new(items, &types, dice);
    let routes: Vec<Route> =
        INTERESTS.iter().map(|interest| Route::new(interest, &types)).collect();
    (1..=NUM_USERS)
        .map(|number| {
            let taste = Taste::draw(dice);
            let history = Shopper::new(&taste, &routes, &shelves).shop(dice);
            ShopUser { id: format!("U{number:04}"), history }
        })
        .collect()
}

/// A position in [`product_types`].
type TypeIndex = usize;

struct TypeRow {
    name: &'static str,
    department: Department,
    refill: bool,
}

/// Every product type of the shop, in the order of departments.
fn product_types() -> Vec<TypeRow> {
    let rows_of = |department: Department| {
        department.product_types().iter().map(move |product_type| TypeRow {
            name: product_type.name,
            department,
            refill: product_type.refill,
        })
    };
    Department::ALL.into_iter().flat_map(rows_of).collect()
}

/// An interest with its names resolved.
struct Route {
    types: Vec<TypeIndex>,
    /// Weight of each of `types` where it is bought without regard to what came before.
    weights: Vec<u32>,
    /// First types of the sequences.
    starts: Vec<TypeIndex>,
    /// Successors of each of `types` in the sequences, repeated as often as they follow.
    successors: Vec<Vec<TypeIndex>>,
}

impl Route {
    fn new(interest: &Interest, rows: &[TypeRow]) -> Self {
        let mut route = Self {
            types: Vec::new(),
            weights: Vec::new(),
            starts: Vec::new(),
            successors: Vec::new(),
        };
        for sequence in interest.sequences {
            let mut previous: Option<usize> = None;
            for (position, &name) in sequence.iter().enumerate() {
                let type_index =
                    rows.iter().position(|row| row.name == name).unwrap_or_else(|| {
                        panic!("the interest {:?} names no product type: {name:?}", interest.name)
                    });
                let slot = route.slot(type_index);
                route.weights[slot] += 7_u32.saturating_sub(position as u32).max(2);
                match previous {
                    Some(previous) => route.successors[previous].push(type_index),
                    None => route.starts.push(type_index),
                }
                previous = Some(slot);
            }
        }
        route
    }

    /// The position of `type_index` in `types`, appended if it is not there yet.
    fn slot(&mut self, type_index: TypeIndex) -> usize {
        self.types.iter().position(|&known| known == type_index).unwrap_or_else(|| {
            self.types.push(type_index);
            self.weights.push(0);
            self.successors.push(Vec::new());
            self.types.len() - 1
        })
    }

    /// A type of this interest for somebody whose last purchase in it was `last`.
    fn next_type(&self, last: Option<TypeIndex>, dice: &mut Dice) -> TypeIndex {
        let expected = match last {
            Some(last) => {
                let slot = self.types.iter().position(|&known| known == last);
                slot.map_or(&[][..], |slot| &self.successors[slot])
            }
            None => &self.starts,
        };
        if !expected.is_empty() && dice.chance(75) {
            *dice.pick(expected)
        } else {
            self.any_type(dice)
        }
    }

    /// A type of this interest for somebody about whom nothing is known.
    fn any_type(&self, dice: &mut Dice) -> TypeIndex {
        let slot = dice.weighted(&self.weights).expect("every type of a route has a weight");
        self.types[slot]
    }
}

/// The items of each product type, with what decides who buys them.
struct Shelves<'a> {
    types: &'a [TypeRow],
    rows: Vec<Vec<ShelfRow>>,
}

struct ShelfRow {
    item: usize,
    /// Zipf-like within the type: the item of rank `r` has weight `1000 / (r + 1)`.
    popularity: u32,
    brand: usize,
    /// The only cut whose wearers buy it, if it has one.
    cut: Option<Cut>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Cut {
    Women,
    Men,
}

impl Cut {
    fn of(title: &str) -> Option<Self> {
        if title.contains(" Women's ") {
            Some(Self::Women)
        } else if title.contains(" Men's ") {
            Some(Self::Men)
        } else {
            None
        }
    }
}

impl<'a> Shelves<'a> {
    fn new(items: &[ShopItem], types: &'a [TypeRow], dice: &mut Dice) -> Self {
        let mut rows: Vec<Vec<ShelfRow>> = types.iter().map(|_| Vec::new()).collect();
        let mut type_index = 0;
        for (index, item) in items.iter().enumerate() {
            // Items come in the order of the types.
            while types[type_index].name != item.product_type {
                type_index += 1;
            }
            rows[type_index].push(ShelfRow {
                item: index,
                popularity: 0,
                brand: item.codes[2] as usize,
                cut: Cut::of(&item.title),
            });
        }
        for shelf in &mut rows {
            for (rank, position) in dice.permutation(shelf.len()).into_iter().enumerate() {
                let row = &mut shelf[position];
                row.popularity = 1000 / (rank as u32 + 1);
                if items[row.item].age_days < NEW_BELOW_DAYS {
                    row.popularity = row.popularity.div_ceil(4); // Little time to be bought in.
                }
            }
        }
        Self { types, rows }
    }
}

/// Taste of a user: price class, brands, cut and interests.
struct Taste {
    price_class: PriceClass,
    /// Favourite brand by department: a position in [`BRANDS`](super::brands::BRANDS).
    favourites: Vec<usize>,
    cut: Cut,
    /// One to three positions in [`INTERESTS`], the first one the strongest.
    interests: Vec<usize>,
}

impl Taste {
    fn draw(dice: &mut Dice) -> Self {
        let class = dice.weighted(&[35, 45, 20]).expect("the weights are not 0");
        let class = PriceClass::ALL[class];
        let favourites = Department::ALL
            .iter()
            .map(|&department| {
                let own_class: Vec<usize> =
                    brands_of(department).filter(|&brand| price_class(brand) == class).collect();
                *dice.pick(&own_class)
            })
            .collect();
        let cut = if dice.chance(50) { Cut::Women } else { Cut::Men };
        Self { price_class: class, favourites, cut, interests: draw_interests(dice) }
    }

    /// Weight with which this user takes an item off the shelf; 0 is never.
    fn weight(&self, row: &ShelfRow, department: Department) -> u32 {
        if row.cut.is_some_and(|cut| cut != self.cut) {
            return 0;
        }
        let distance = (price_class(row.brand) as i32 - self.price_class as i32).abs();
        let class_weight = [24, 2, 0][distance as usize];
        let is_favourite = self.favourites[department as usize] == row.brand;
        row.popularity * class_weight * if is_favourite { 9 } else { 1 }
    }
}

fn draw_interests(dice: &mut Dice) -> Vec<usize> {
    let count = dice.weighted(&[30, 45, 25]).expect("the weights are not 0") + 1;
    let mut interests = vec![any_interest(dice)];
    while interests.len() < count {
        let next = related_interest(interests[0], dice);
        if !interests.contains(&next) {
            interests.push(next);
        }
    }
    interests
}

/// An interest that goes with `interest`, or, less often, any.
fn related_interest(interest: usize, dice: &mut Dice) -> usize {
    if !dice.chance(65) {
        return any_interest(dice);
    }
    let name = *dice.pick(INTERESTS[interest].near);
    INTERESTS
        .iter()
        .position(|interest| interest.name == name)
        .unwrap_or_else(|| panic!("no interest is named {name:?}"))
}

fn any_interest(dice: &mut Dice) -> usize {
    let weights: Vec<u32> = INTERESTS.iter().map(|interest| interest.popularity).collect();
    dice.weighted(&weights).expect("every interest has a popularity")
}

/// A user on the way through the shop.
struct Shopper<'a> {
    taste: &'a Taste,
    routes: &'a [Route],
    shelves: &'a Shelves<'a>,
    history: Vec<usize>,
    /// Number of items of each type in the history.
    num_owned: Vec<u32>,
    /// Positions in [`INTERESTS`]; they change when nothing is left to buy for one.
    interests: Vec<usize>,
    /// Last type bought for each of `interests`, from which the user continues.
    last: Vec<Option<TypeIndex>>,
}

impl<'a> Shopper<'a> {
    fn new(taste: &'a Taste, routes: &'a [Route], shelves: &'a Shelves<'a>) -> Self {
        Self {
            taste,
            routes,
            shelves,
            history: Vec::new(),
            num_owned: vec![0; shelves.types.len()],
            interests: taste.interests.clone(),
            last: vec![None; taste.interests.len()],
        }
    }

    fn shop(mut self, dice: &mut Dice) -> Vec<usize> {
        let num_interests = self.interests.len();
        let longest = [12, 20, 30][num_interests - 1];
        let num_purchases = dice.between(6, longest) as usize;
        let strengths = &[5, 3, 2][..num_interests];
        let mut current = 0;
        while self.history.len() < num_purchases {
            if dice.chance(10) {
                self.buy_for_somebody_else(dice);
                continue;
            }
            if dice.chance(15) {
                current = dice.weighted(strengths).expect("the strengths are not 0");
            }
            if let Some(type_index) = self.wanted_type(current, dice) {
                self.buy(type_index, dice);
                self.last[current] = Some(type_index);
            } else {
                self.take_up_another_interest(current, dice);
            }
        }
        self.history
    }

    /// The type to buy next for an interest; `None` if everything that comes to mind is owned.
    fn wanted_type(&self, interest: usize, dice: &mut Dice) -> Option<TypeIndex> {
        let route = &self.routes[self.interests[interest]];
        (0..8).map(|_| route.next_type(self.last[interest], dice)).find(|&type_index| {
            let most = if self.shelves.types[type_index].refill { MOST_REFILLS } else { 1 };
            self.num_owned[type_index] < most
        })
    }

    fn take_up_another_interest(&mut self, done: usize, dice: &mut Dice) {
        let next = loop {
            let next = related_interest(self.interests[done], dice);
            if !self.interests.contains(&next) {
                break next;
            }
        };
        self.interests[done] = next;
        self.last[done] = None;
    }

    /// A purchase that has nothing to do with the user's interests: a present, a whim.
    fn buy_for_somebody_else(&mut self, dice: &mut Dice) {
        let type_index = self.routes[any_interest(dice)].any_type(dice);
        self.buy(type_index, dice);
    }

    /// Buys an item of this type, or nothing if every item that fits the taste is bought already.
    fn buy(&mut self, type_index: TypeIndex, dice: &mut Dice) {
        let department = self.shelves.types[type_index].department;
        let shelf = &self.shelves.rows[type_index];
        let weights: Vec<u32> = shelf
            .iter()
            .map(|row| {
                let is_bought = self.history.contains(&row.item);
                if is_bought { 0 } else { self.taste.weight(row, department) }
            })
            .collect();
        if let Some(choice) = dice.weighted(&weights) {
            self.history.push(shelf[choice].item);
            self.num_owned[type_index] += 1;
        }
    }
}
