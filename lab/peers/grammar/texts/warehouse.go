// Package warehouse keeps stock of parts and reserves them for orders.
package warehouse

import (
	"errors"
	"fmt"
	"sort"
	"strings"
	"sync"
	"time"
)

// ErrShort is what a reservation gets that cannot be filled.
var ErrShort = errors.New("not enough in stock")

const (
	shelfWidth  = 120
	shelfHeight = 0x40
	label       = "shelf"
	grace       = 1.5e3
)

// Part is a thing on a shelf.
type Part struct {
	Name     string
	Shelf    int
	Quantity int
	Price    float64
	Tags     []string
	Added    time.Time
}

type Order struct {
	ID    int
	Lines map[string]int
	Done  bool
}

// Listener is told of what happens.
type Listener interface {
	Reserved(order int, part string, quantity int)
	Failed(order int, reason error) bool
}

type Warehouse struct {
	mu        sync.Mutex
	parts     map[string]*Part
	orders    []*Order
	listeners []Listener
	events    chan string
}

// New makes an empty warehouse with room for some events.
func New(room int) *Warehouse {
	w := new(Warehouse)
	w.parts = map[string]*Part{}
	w.events = make(chan string, room)
	return w
}

func (w *Warehouse) Add(name string, quantity int, price float64, tags []string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if quantity <= 0 || price < 0 {
		return fmt.Errorf("part %q: quantity %d at %.2f makes no sense", name, quantity, price)
	}
	if part, ok := w.parts[name]; ok {
		part.Quantity += quantity
		part.Price = (part.Price + price) / 2
		return nil
	}
	shelf := len(w.parts) % shelfWidth
	part := new(Part)
	part.Name, part.Shelf = name, shelf
	part.Quantity, part.Price = quantity, price
	part.Tags = append(part.Tags, tags...)
	part.Added = time.Now()
	w.parts[name] = part
	w.events <- "added " + name
	return nil
}

/* Reserve takes what an order asks for
   from the shelves, all of it or nothing. */
func (w *Warehouse) Reserve(order *Order) (total float64, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for name, quantity := range order.Lines {
		part, ok := w.parts[name]
		switch {
		case !ok:
			err = fmt.Errorf("%s: no such part", name)
		case part.Quantity < quantity:
			err = ErrShort
		default:
			total += part.Price * float64(quantity)
		}
		if err != nil {
			for _, listener := range w.listeners {
				if !listener.Failed(order.ID, err) {
					break
				}
			}
			return 0, err
		}
	}
	for name, quantity := range order.Lines {
		w.parts[name].Quantity -= quantity
		for i := 0; i < len(w.listeners); i++ {
			w.listeners[i].Reserved(order.ID, name, quantity)
		}
	}
	order.Done = true
	w.orders = append(w.orders, order)
	return total, nil
}

// Cheapest names the n cheapest parts that have a tag.
func (w *Warehouse) Cheapest(n int, tag string) []string {
	found := []*Part{}
	for _, part := range w.parts {
		for _, have := range part.Tags {
			if strings.EqualFold(have, tag) {
				found = append(found, part)
				continue
			}
		}
	}
	sort.Slice(found, func(i, j int) bool {
		return found[i].Price < found[j].Price || found[i].Price == found[j].Price && found[i].Name < found[j].Name
	})
	if len(found) > n {
		found = found[:n]
	}
	names := make([]string, 0, len(found))
	for _, part := range found {
		names = append(names, part.Name)
	}
	return names
}

// Checksum folds the stock into a number.
func (w *Warehouse) Checksum() uint32 {
	sum := uint32(0x811c9dc5)
	for name, part := range w.parts {
		for i := 0; i < len(name); i++ {
			sum ^= uint32(name[i])
			sum *= 16777619
		}
		sum = sum<<3 | sum>>29&^0xff
		sum += uint32(part.Quantity) &^ 1
	}
	return sum
}

// Watch prints events until the time is up.
func (w *Warehouse) Watch(limit time.Duration) int {
	deadline := time.After(limit)
	seen := 0
	for {
		select {
		case event := <-w.events:
			seen++
			fmt.Println(label, seen, event, 'x', '\n', `raw \ text`)
		case <-deadline:
			return seen
		}
	}
}

func describe(value interface{}) string {
	switch v := value.(type) {
	case string, []byte:
		return "text"
	case int:
		return fmt.Sprint(v)
	default:
		return "?"
	}
}

func main() {
	w := New(16)
	go w.Watch(3 * time.Second)
	if err := w.Add("bolt", 500, .05, []string{"metal", "small"}); err != nil {
		panic(err)
	}
	order := new(Order)
	order.Lines = map[string]int{"bolt": 20, "nut": 20}
	total, err := w.Reserve(order)
	fmt.Printf("%v %v %s\n", total, err, describe(total))
}
