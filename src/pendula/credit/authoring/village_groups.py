"""Groups of an invented network, the habits and the names of their members.

No random numbers are used here: the number of a member gives its habit and name by arithmetic, rotated by an offset
from the seed.
"""

from collections.abc import Mapping, Sequence

from msgspec import Struct


class Group(Struct, frozen=True):
    """A group and the ids of its members; in `mediates` of a hundred lines the creditor mediates."""

    label: str
    member: str
    type: str
    mediates: int


class Habit(Struct, frozen=True):
    """The behaviour of `share` per cent of a group: receivers (by weight, or along chains) and amounts in units."""

    id: str
    group: str
    share: int
    rate: str
    weights: Mapping[str, int]
    chains: tuple[str, ...]
    affinity: str
    p50: int
    p90: int
    most: int
    periodicity: str = "1"


GROUPS = {
    "households": Group("Households", "household", "person", 35),
    "retail": Group("Shops and stalls", "shop", "business", 75),
    "producers": Group("Makers and growers", "maker", "business", 60),
    "services": Group("Services", "service", "business", 50),
    "anchors": Group("Common institutions", "anchor", "hub", 100),
    "agents": Group("Go-betweens", "agent", "business", 100),
    "neighbours": Group("Neighbours", "neighbour", "person", 80),
}

# fmt: off
HABITS = (
    Habit(
        id="household", group="households", share=55, rate="0.1",
        weights={"households": 55, "retail": 25, "services": 20}, chains=("retail",), affinity="0.5",
        p50=110, p90=340, most=500,
    ),
    Habit(
        id="household_active", group="households", share=25, rate="0.15",
        weights={"households": 55, "services": 25, "retail": 20}, chains=("retail", "services"), affinity="0.5",
        p50=150, p90=420, most=500,
    ),
    Habit(
        id="household_frugal", group="households", share=20, rate="0.05",
        weights={"retail": 45, "households": 35, "producers": 20}, chains=("retail",), affinity="0.6",
        p50=70, p90=220, most=400, periodicity="0.5",
    ),
    Habit(
        id="retail", group="retail", share=100, rate="0.12",
        weights={"producers": 50, "anchors": 40, "households": 10}, chains=("producers",), affinity="0.6",
        p50=210, p90=460, most=500,
    ),
    Habit(
        id="producer_large", group="producers", share=35, rate="0.12",
        weights={"households": 50, "services": 25, "retail": 25}, chains=("households",), affinity="0.7",
        p50=230, p90=470, most=500, periodicity="1.5",
    ),
    Habit(
        id="producer_small", group="producers", share=65, rate="0.08",
        weights={"households": 50, "services": 20, "retail": 30}, chains=("households",), affinity="0.6",
        p50=140, p90=380, most=500,
    ),
    Habit(
        id="service", group="services", share=100, rate="0.08",
        weights={"households": 45, "retail": 30, "anchors": 25}, chains=("households", "retail"), affinity="0.5",
        p50=130, p90=380, most=500,
    ),
    Habit(
        id="anchor_hub", group="anchors", share=100, rate="0.06",
        weights={"producers": 40, "households": 45, "services": 15}, chains=("producers", "households"), affinity="0.6",
        p50=280, p90=480, most=500,
    ),
    Habit(
        id="agent", group="agents", share=100, rate="0.05",
        weights={"anchors": 30, "households": 40, "retail": 30}, chains=("anchors",), affinity="0.3",
        p50=160, p90=420, most=500,
    ),
    Habit(
        id="neighbour", group="neighbours", share=100, rate="0.2",
        weights={"neighbours": 1}, chains=("neighbours",), affinity="0.5",
        p50=120, p90=320, most=500,
    ),
)
# fmt: on
SPREAD = 37  # coprime to 100: its multiples visit each per cent once

_GIVEN = (
    *("Adela", "Alwin", "Anouk", "Arvid", "Beata", "Bram", "Cosima", "Corin", "Dagny", "Doran", "Edda", "Emeric"),
    *("Fenna", "Florin", "Gisela", "Gwyn", "Hadley", "Hedda", "Idris", "Imke", "Ines", "Jarek", "Jorun", "Kaja"),
    *("Kester", "Leoni", "Lorcan", "Mabel", "Milo", "Nadja", "Nils", "Odile", "Orrin", "Petra", "Quentin", "Ragna"),
    *("Roan", "Sanne", "Silas", "Tamsin", "Tobin", "Ursel", "Viggo", "Wanda", "Wim", "Ysolde", "Yorick", "Zelda"),
)
_FAMILY = (
    *("Alderby", "Ashcombe", "Barrow", "Birkwell", "Brackett", "Calloway", "Cinder", "Copley", "Dunmore", "Eastlake"),
    *("Elmhurst", "Fairlie", "Farrow", "Fenwick", "Garnet", "Goswell", "Hartnell", "Hazelby", "Holloway", "Inglewood"),
    *("Juniper", "Kettle", "Kirkby", "Larkin", "Linden", "Lowther", "Marlow", "Merrick", "Nettleton", "Norcross"),
    *("Oakes", "Orchardson", "Pemberly", "Pickard", "Quarles", "Redfern", "Rowntree", "Saltmarsh", "Sedgeley"),
    *("Tarrant", "Thackeray", "Thistle", "Underhill", "Varley", "Wainwright", "Whitlock", "Yarrow", "Yeoman"),
)
_PLACES = (
    *("Abbot's End", "Badger Row", "Beacon Hill", "Birch Lane", "Bridge Foot", "Brook Side", "Castle Mound"),
    *("Chapel Yard", "Church Stile", "Clover Field", "Crane Wharf", "Crossways", "Dove Court", "Eel Pie Quay"),
    *("Elder Grove", "Ferry Landing", "Fiddler's Green", "Fox Hollow", "Glebe Meadow", "Goose Common", "Heron Weir"),
    *("High Street", "Hill Top", "Hop Garden", "Kiln Corner", "Lamb's Fold", "Lime Walk", "Lock Cottages"),
    *("Lower Mill", "Maltings", "Market Square", "Nether Wood", "North Gate", "Old Quarry", "Otter Bank", "Paddock"),
    *("Pear Tree Close", "Pond Head", "Rookery", "Sand Pit Lane", "Sheep Wash", "South Gate", "Stone Barn"),
    *("Tanner's Row", "Toll House", "Upper Mill", "Well Cross", "Windmill Hill"),
)
_TRADES: Mapping[str, Sequence[str]] = {
    "anchors": (
        *("Granary", "Water Board", "Savings Circle", "Cold Store", "Energy Works", "Freight Yard", "Seed Bank"),
        *("Housing Trust", "Assembly Rooms", "Timber Yard", "Tool Library", "Road Board", "Creamery", "Grain Exchange"),
        *("Hospital", "College"),
    ),
    "producers": (
        *("Orchard", "Dairy", "Flour Mill", "Apiary", "Sawmill", "Pottery", "Weaving Shed", "Brewhouse", "Nursery"),
        *("Smithy", "Tannery", "Vineyard", "Fishery", "Poultry Yard", "Soapworks", "Joinery"),
    ),
    "retail": (
        *("General Store", "Bakehouse", "Greengrocer", "Chandlery", "Bookshop", "Ironmonger", "Draper", "Apothecary"),
        *("Cheesemonger", "Toyshop", "Stationer", "Wine Cellar", "Florist", "Cobbler", "Spice Stall", "Tackle Shop"),
    ),
    "services": (
        *("Repairs", "Surgery", "Laundry", "Haulage", "Music School", "Barber", "Surveyor", "Plumbing", "Nursing"),
        *("Print Room", "Bookkeeping", "Roofing", "Tea Room", "Taxi", "Tailoring", "Gardening"),
    ),
    "agents": (
        *(
            "Notary",
            "Brokerage",
            "Arbiter",
            "Auctioneer",
            "Chancery",
            "Clearing Desk",
            "Commission",
            "Escrow",
            "Factor",
        ),
        *("Introductions", "Ledger Room", "Letting", "Mediation", "Purchasing", "Tally House", "Underwriter"),
    ),
}

# Coprime to the number of pairs: every pair is used once before any repeats, and neighbours share no word.
_STRIDE = 1013


def habit_of(group: str, place: int) -> str:
    """The habit of a member; habits alternate, so that even a small group has all of them by share."""
    point = place * SPREAD % 100
    for habit in HABITS:
        if habit.group == group:
            point -= habit.share
            if point < 0:
                return habit.id
    raise AssertionError(f"the habits of {group} are not shared out")


def name_of(group: str, number: int, turn: int = 0) -> str:
    """The name of a member: of a firm in groups that trade, else of a person."""
    trades = _TRADES.get(group)
    front, back = (_FAMILY, trades) if trades else (_GIVEN, _FAMILY)
    pairs = len(front) * len(back)
    pair = (number * _STRIDE + turn) % pairs
    again = number // pairs
    name = f"{front[pair % len(front)]} {back[pair // len(front)]}"
    return name if again == 0 else f"{name} of {_PLACES[(again + turn) % len(_PLACES)]}"
