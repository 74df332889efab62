package bank.core;

import java.util.List;
import java.util.Map;

/* An account
   with a history. */
public class Account extends Entity implements Comparable<Account>, Closeable {
    private static final int LIMIT = 1000;
    private List<Map<String, Double> > history = new ArrayList<>();
    protected double balance, reserve = 0.5;
    int[] codes = {1, 2, 3};

    static {
        register("account");
    }

    public Account(String owner, double balance) throws BankException {
        super(owner);
        this.balance = balance;
    }

    // Returns what is left.
    public double withdraw(double amount) throws BankException {
        if (amount > balance || amount <= 0) {
            throw new BankException("cannot withdraw");
        } else {
            balance -= amount;
        }
        for (int i = 0; i < codes.length; i++) {
            codes[i] = codes[i] * 2 + (i << 1);
        }
        for (String name : names) {
            System.out.println(name);
        }
        try {
            log.write(amount);
        } catch (IOException failure) {
            return -1;
        } finally {
            log.close();
        }
        switch (state) {
            case 1: open(); break;
            default: return balance;
        }
        do { step(); } while (running && !done);
        names.forEach(name -> total += name.length());
        return amount >= 10 ? balance : (double) LIMIT;
    }
}

interface Closeable {
    void close();
}
