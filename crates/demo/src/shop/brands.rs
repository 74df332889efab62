//! The brands of the shop: 16 in each price class, each with a few series names.

use super::departments::Department::{
    self, Baking, Bedding, Camping, Coffee, Craft, Cycling, Fitness, Garden, Hiking, Kitchen,
    Living, Office, Pets, Running, Toys,
};

/// Price class of a brand, and of a customer's taste.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PriceClass {
    Budget,
    Mid,
    Premium,
}

impl PriceClass {
    pub(crate) const ALL: [Self; 3] = [Self::Budget, Self::Mid, Self::Premium];

    /// The price of this class in percent of the price in the tables.
    pub(crate) fn price_percent(self) -> u32 {
        match self {
            Self::Budget => 58,
            Self::Mid => 100,
            Self::Premium => 185,
        }
    }
}

/// A maker of products. Its position in [`BRANDS`] is code 2 of the semantic ID of its items.
#[derive(Debug)]
pub(crate) struct Brand {
    pub(crate) name: &'static str,
    /// The departments it makes products for.
    pub(crate) departments: &'static [Department],
    pub(crate) series: [&'static str; 5],
}

/// All brands: [`BRANDS_PER_CLASS`] of each price class, in the order of [`PriceClass::ALL`].
pub(crate) const BRANDS: &[Brand] = &[
    // Budget.
    brand("Pebbleway", &[Camping, Hiking, Cycling], ["Scout", "Brook", "Roam", "Thistle", "Path"]),
    brand("Tramply", &[Camping, Hiking, Running], ["Amble", "Drift", "Start", "Ready", "Rove"]),
    brand("Quickhare", &[Running, Cycling, Fitness], ["Dash", "Pace", "Sprint", "Bound", "Flow"]),
    brand("Bendry", &[Fitness, Running], ["Basic", "Flex", "Active", "Zest", "Move"]),
    brand("Spokeling", &[Cycling, Camping], ["City", "Loop", "Go", "Mile", "Daily"]),
    brand("Crumbelle", &[Baking, Kitchen], ["Sunday", "Daisy", "Sweet", "Home", "Golden"]),
    brand(
        "Panory",
        &[Kitchen, Baking, Coffee],
        ["Simple", "Every Day", "Merry", "Pronto", "Family"],
    ),
    brand("Morningjar", &[Coffee, Kitchen], ["Dawn", "Corner", "Early", "Robin", "Weekday"]),
    brand("Loamling", &[Garden, Pets], ["Sprout", "Patch", "Yard", "Clover", "Sunny"]),
    brand("Plainfold", &[Office, Craft], ["Core", "Page", "Line", "Basic", "Margin"]),
    brand("Tidymark", &[Office, Living], ["Studio", "Nook", "Align", "Base", "Cube"]),
    brand("Dozeling", &[Bedding, Living, Pets], ["Cloud", "Nap", "Snug", "Moon", "Lull"]),
    brand("Hearthby", &[Living, Bedding, Baking], ["Cottage", "Maple", "Home", "Lane", "Ember"]),
    brand("Wagtrot", &[Pets, Garden, Toys], ["Buddy", "Happy", "Tumble", "Park", "Rascal"]),
    brand("Doodlemoor", &[Craft, Toys, Office], ["Splash", "Play", "Rainbow", "Jot", "Bright"]),
    brand("Tumblekit", &[Toys, Craft, Fitness], ["Junior", "Hop", "Spark", "Jolly", "Club"]),
    // Mid.
    brand("Fernhollow", &[Camping, Hiking, Garden], ["Ridge", "Alder", "Meadow", "Glen", "Birch"]),
    brand("Wickenfell", &[Hiking, Camping, Cycling], ["Crag", "Moor", "Cairn", "Beacon", "Pass"]),
    brand("Tarnbeck", &[Hiking, Camping, Running], ["Summit", "Stream", "Fell", "Wander", "Peak"]),
    brand("Swiftlark", &[Running, Fitness], ["Tempo", "Aero", "Rise", "Pulse", "Interval"]),
    brand("Velomere", &[Cycling, Running], ["Tour", "Gravel", "Cadence", "Urban", "Chicane"]),
    brand("Stillbough", &[Fitness, Bedding], ["Willow", "Balance", "Calm", "Lotus", "Haven"]),
    brand("Gristmoor", &[Baking, Kitchen], ["Harvest", "Mill", "Hearth", "Barley", "Farmhouse"]),
    brand(
        "Copperquill",
        &[Kitchen, Coffee, Baking],
        ["Heritage", "Bistro", "Larder", "Ember", "Saffron"],
    ),
    brand("Dunroast", &[Coffee, Kitchen], ["Harbour", "Crema", "Velvet", "Barrel", "Noon"]),
    brand("Mossgarth", &[Garden, Living], ["Orchard", "Hedgerow", "Fern", "Arbour", "Courtyard"]),
    brand("Oakledger", &[Office, Craft], ["Draft", "Folio", "Chapter", "Focus", "Quarto"]),
    brand("Linwold", &[Bedding, Living, Baking], ["Harmony", "Tide", "Loft", "Fable", "Dune"]),
    brand("Amberlow", &[Living, Office, Bedding], ["Glow", "Haze", "Arden", "Dusk", "Hygge"]),
    brand("Furrowby", &[Pets, Garden], ["Burrow", "Field", "Paddock", "Thicket", "Barn"]),
    brand("Inkmallow", &[Craft, Office, Toys], ["Palette", "Muse", "Quill", "Sketch", "Tint"]),
    brand("Pippinwood", &[Toys, Pets, Craft], ["Acorn", "Fable", "Button", "Hazel", "Meadow"]),
    // Premium.
    brand("Kaldrift", &[Camping, Hiking, Running], ["Fjell", "Polar", "Aurora", "Skarn", "Nord"]),
    brand("Steilgrat", &[Hiking, Camping], ["Gipfel", "Firn", "Granit", "Couloir", "Alpin"]),
    brand("Aurelune", &[Fitness, Bedding], ["Serene", "Solstice", "Halo", "Silhouette", "Lumen"]),
    brand(
        "Corvaine",
        &[Running, Fitness, Cycling],
        ["Vantage", "Apex", "Noir", "Velocity", "Elite"],
    ),
    brand("Raskvelo", &[Cycling, Running], ["Domestique", "Breakaway", "Col", "Peloton", "Etape"]),
    brand("Belfournet", &[Baking, Kitchen], ["Maison", "Patissier", "Boulanger", "Soleil", "Or"]),
    brand("Ostrelle", &[Kitchen, Coffee], ["Atelier", "Signature", "Marbre", "Reserve", "Blanc"]),
    brand("Caldermont", &[Coffee, Baking], ["Grand", "Opus", "Baron", "Estate", "Nocturne"]),
    brand(
        "Wrenfold",
        &[Garden, Pets],
        ["Manor", "Walled Garden", "Glasshouse", "Rowan", "Topiary"],
    ),
    brand(
        "Hollis & Tarn",
        &[Living, Garden, Bedding],
        ["Heirloom", "Mayfield", "Cloister", "Wilder", "Elm"],
    ),
    brand("Studio Vennick", &[Office, Living], ["Monolith", "Axis", "Form", "Plane", "Contour"]),
    brand("Marquenot", &[Office, Craft], ["Scribe", "Editor", "Vellum", "Archive", "Cipher"]),
    brand("Sablewick", &[Bedding, Living], ["Opaline", "Nightfall", "Silken", "Grove", "Ivory"]),
    brand("Barkholm", &[Pets, Garden], ["Hunter", "Estate", "Loyal", "Kennel", "Heath"]),
    brand("Atelier Brune", &[Craft, Toys], ["Pastel", "Ochre", "Umber", "Fresco", "Lumiere"]),
    brand("Lindenkind", &[Toys, Craft, Pets], ["Wald", "Stern", "Garten", "Igel", "Traum"]),
];

/// Number of brands in each price class.
const BRANDS_PER_CLASS: usize = 16;

const _: () = assert!(BRANDS.len() == PriceClass::ALL.len() * BRANDS_PER_CLASS);

/// The price class of the brand at `index` of [`BRANDS`].
pub(crate) fn price_class(index: usize) -> PriceClass {
    PriceClass::ALL[index / BRANDS_PER_CLASS]
}

/// The positions in [`BRANDS`] of the brands of `department`.
pub(crate) fn brands_of(department: Department) -> impl Iterator<Item = usize> {
    (0..BRANDS.len()).filter(move |&index| BRANDS[index].departments.contains(&department))
}

const fn brand(
    name: &'static str,
    departments: &'static [Department],
    series: [&'static str; 5],
) -> Brand {
    Brand { name, departments, series }
}
