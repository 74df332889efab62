package shop.inventory;

import java.util.*;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Predicate;

/**
 * What a shop has on its shelves, and who is told when there is little left.
 */
public class Inventory extends AbstractStore implements Iterable<Item>, Cloneable {
    private static final int LEAST = 5;
    protected volatile boolean open = true, closing;
    private final Map<String, Item> items = new ConcurrentHashMap<>();
    private final List<? extends Listener> listeners;
    private double[] prices = new double[16];
    private char separator = ',', quote = '\'', tab = '\t';
    private String greeting = "Welcome, \"friend\"!\n";

    static {
        Registry.register("inventory", Inventory.class_name());
    }

    public Inventory(List<Listener> listeners, int capacity) throws IllegalStateException {
        super(capacity);
        this.listeners = listeners;
        if (capacity <= 0) {
            throw new IllegalStateException("capacity is " + capacity);
        }
    }

    // Adds to what is there already.
    public synchronized Item add(String name, int quantity, double price) {
        Item item = items.get(name);
        if (item == null) {
            item = new Item(name, price);
            items.put(name, item);
            prices[items.size() % prices.length] = price;
        } else {
            item.setPrice((item.getPrice() + price) / 2.0);
        }
        item.quantity += quantity;
        return item;
    }

    public boolean remove(String name, int quantity) {
        Item item = items.get(name);
        if (item == null || item.quantity < quantity) {
            return false;
        }
        item.quantity -= quantity;
        if (item.quantity < LEAST && !closing) {
            for (Listener listener : listeners) {
                listener.low(item, LEAST - item.quantity);
            }
        }
        return true;
    }

    public List<Item> find(Predicate<Item> wanted, int most) {
        List<Item> found = new ArrayList<>();
        for (Item item : items.values()) {
            if (found.size() >= most)
                break;
            if (!wanted.test(item)) {
                continue;
            }
            found.add(item);
        }
        found.sort((a, b) -> Double.compare(a.getPrice(), b.getPrice()));
        return found;
    }

    /* A polynomial hash of all names,
       the same for every order of insertion. */
    public int hash() {
        int sum = 17;
        for (int at = 0, length = prices.length; at < length; at++) {
            long bits = Double.doubleToLongBits(prices[at]);
            sum ^= (int) (bits ^ (bits >>> 32));
            sum = (sum << 5) - sum + ~at;
        }
        return open ? sum & 2147483647 : -sum | 1;
    }

    public static String describe(Object value) {
        if (value instanceof Item) {
            return ((Item) value).name + ": " + ((Item) value).quantity;
        }
        switch (String.valueOf(value).length()) {
            case 0:
                return "nothing";
            case 1:
            case 2:
                return "little";
            default:
                break;
        }
        return value == null ? "null" : value.toString().trim();
    }

    public void load(Reader source) throws IOException, ParseException {
        BufferedReader lines = null;
        try {
            lines = new BufferedReader(source);
            String line;
            int number = 0;
            while ((line = lines.readLine()) != null) {
                number++;
                String[] fields = line.split(",");
                if (fields.length != 3) {
                    throw new ParseException("line " + number + ": " + fields.length + " fields", number);
                }
                add(fields[0], Integer.parseInt(fields[1]), Double.parseDouble(fields[2]));
            }
        } catch (NumberFormatException problem) {
            System.err.println(problem.getMessage());
        } finally {
            if (lines != null) lines.close();
        }
    }

    public void drain() {
        outer: do {
            synchronized (this) {
                if (items.isEmpty()) break outer;
                Runnable task = () -> System.out.println("draining " + items.size());
                task.run();
                items.remove(items.keySet().iterator().next());
            }
        } while (open && closing != false);
    }

    private <K extends Comparable<K>, V> Map<K, List<V> > group(Collection<V> values, Function<V, K> key) {
        Map<K, List<V> > groups = new TreeMap<>();
        for (V value : values) {
            groups.computeIfAbsent(key.apply(value), k -> new ArrayList<>()).add(value);
        }
        return groups;
    }
}

interface Listener extends EventListener {
    int URGENT = 1;

    void low(Item item, int missing);

    public abstract boolean accepts(String name);
}
